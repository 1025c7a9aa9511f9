"""`kafka-storage` compared with Apache Kafka's StorageTool: the same output, exit codes and files.

The files are compared byte for byte after blanking what must differ: times, their checksums, random ids.
Feature levels of protocols that are not served yet are given explicitly, because Moldau's default omits them.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.cli.kafka.storage import main
from moldau.config.properties import load_properties
from moldau.protocol.records import iter_batches
from tests.harness.apache.node import ApacheCluster, java_command
from tests.interop.java_oracle import ask_java, jars
from tests.unit.config.node_properties import node

pytestmark = pytest.mark.interop

CLUSTER = "PyN0qanKStKz_he6AG-KTQ"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER = "7Xw2PzKRRgWaTVzn9SHkgA"
THIRD = "3YvJ0zYcQfuEBOOkTiMCrw"
ALL_FEATURES = [
    argument
    for level in ("group.version=1", "share.version=1", "streams.version=1", "transaction.version=2")
    for argument in ("-f", level)
]


class Run(NamedTuple):
    code: int
    out: str
    complaint: str


class Folder:
    """A folder in which both tools run, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        several = f"{self.data}/b,{self.data}/a"
        dynamic = node("controller.quorum.voters", log_dirs=several, metadata_log_dir=f"{self.data}/m")
        dynamic["controller.quorum.bootstrap.servers"] = "localhost:9093"
        self.dynamic = self._write("dynamic.properties", dynamic)
        self.static = self._write("static.properties", node(log_dirs=f"{self.data}/a"))
        three = "1@localhost:9093,2@localhost:9094,3@localhost:9095"
        self.three = self._write(
            "three.properties", node(log_dirs=f"{self.data}/a", controller_quorum_voters=three)
        )
        broker = {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
        self.broker = self._write("broker.properties", dynamic | broker)
        self.formatting = tuple(["format", "-t", CLUSTER, "-c", file] for file in (self.dynamic, self.static))

    def _write(self, name: str, properties: dict[str, str]) -> str:
        path = self.path / name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)

    def apache(self, *commands: list[str]) -> list[Run]:
        answers = ask_java("StorageRuns", ("\t".join(command) for command in commands))
        return [self._run(code, decoded(out), decoded(complaint)) for _, code, out, complaint in answers]

    def moldau(self, command: list[str]) -> Run:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
        return self._run(code, out.getvalue(), err.getvalue().rstrip("\n"))

    def _run(self, code: int | str, out: str, complaint: str) -> Run:
        """Run a tool; Java's hash order of folders is blanked, too."""
        formatted = f"Log directory {self.data}/. is already"
        lines = sorted(out.splitlines()) if "Formatting" in out else out.splitlines()
        return Run(int(code), "\n".join(lines), re.sub(formatted, "Log directory ? is already", complaint))

    def take(self) -> dict[str, bytes]:
        """Return the written files with the differing values blanked, and empty the folder."""
        files = {
            str(path.relative_to(self.data)): blanked(path.name, path.read_bytes())
            for path in sorted(self.data.rglob("*"))
            if path.is_file()
        }
        shutil.rmtree(self.data, ignore_errors=True)
        return files


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def blanked(name: str, data: bytes) -> bytes:
    if name == "meta.properties":
        date = rb"(?m)^#\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}$"
        return re.sub(rb"(?m)directory.id=[\w-]{22}$", b"directory.id=?", re.sub(date, b"#date", data))
    buffer = bytearray(data)
    for position, header in iter_batches(data):
        buffer[position + 17 : position + 21] = bytes(4)
        buffer[position + 27 : position + 43] = bytes(16)
        if position == 0 and header.is_control:
            # The header record: its value has a version and the time of the last record.
            buffer[73:81] = bytes(8)
    return bytes(buffer)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    jars()
    return Folder(tmp_path)


def commands_that_write(folder: Folder) -> list[list[str]]:
    begin = ["format", "-t", CLUSTER, "-c"]
    voter = f"1@localhost:9093:{DIRECTORY}"
    return [
        [*begin, folder.dynamic, "--initial-controllers", voter, *ALL_FEATURES],
        [*begin, folder.dynamic, "-I", f"1@some.host:9093:{DIRECTORY}", "-r", "3.9"],
        [*begin, folder.dynamic, "-I", f"2@b.host:9094:{OTHER},{voter},3@c:1:{THIRD}", *ALL_FEATURES],
        [*begin, folder.dynamic, "-I", f"2@b.host:9094:{OTHER},3@c:1:{THIRD}", *ALL_FEATURES],
        [*begin, folder.dynamic, "--no-initial-controllers", *ALL_FEATURES],
        [*begin, folder.broker, *ALL_FEATURES, "-f", "kraft.version=1"],
        [*begin, folder.three, *ALL_FEATURES],
        [*begin, folder.static, *ALL_FEATURES],
        [*begin, folder.static, "-r", "3.6"],
        [*begin, folder.static, "-f", "metadata.version=20"],
        [*begin, folder.static, *ALL_FEATURES, "-f", "eligible.leader.replicas.version=0"],
        ["format", "-t", "any text", "-c", folder.static, "-r", "4.0", *ALL_FEATURES[:2], *ALL_FEATURES[-2:]],
    ]


def test_formatted_folders_match_apache_kafka(folder: Folder) -> None:
    commands = commands_that_write(folder)
    for command in commands:
        (theirs,) = folder.apache(command)
        their_files = folder.take()
        ours = folder.moldau(command)
        assert (ours, folder.take()) == (theirs, their_files), command


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_are_stored_like_by_apache_kafka(folder: Folder, mechanism: str) -> None:
    users = ("name=alice,password=a b=c,salt=N3E=", "name=bob,iterations=8192,salt=N3E,saltedpassword=YCE=")
    more = [word for user in users for word in ("-S", f"{mechanism}=[{user}]")]
    command = [*folder.formatting[1], *ALL_FEATURES, *more]
    (theirs,) = folder.apache(command)
    their_files = folder.take()
    ours = folder.moldau(command)
    # Apache Kafka's tool prints the keys.
    hidden = re.sub(r"(salt|storedKey|serverKey)=\[[-\d, ]*\]", r"\1=[hidden]", theirs.out)
    assert (ours.code, ours.out, folder.take()) == (theirs.code, hidden, their_files)


def test_standalone_differs_only_in_the_directory_id(folder: Folder) -> None:
    command = ["format", "-t", CLUSTER, "-c", folder.dynamic, "--standalone", *ALL_FEATURES]

    def files_and_directory() -> tuple[dict[str, bytes], bytes]:
        text = load_properties(folder.data / "m" / "meta.properties")["directory.id"]
        return folder.take(), base64.urlsafe_b64decode(text + "==")

    (theirs,) = folder.apache(command)
    their_files, their_id = files_and_directory()
    ours = folder.moldau(command)
    our_files, our_id = files_and_directory()
    assert ours == theirs
    snapshot = "m/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    assert our_id in our_files[snapshot]
    our_files[snapshot] = our_files[snapshot].replace(our_id, their_id)
    assert our_files == their_files


def test_refusals_match_apache_kafka(folder: Folder) -> None:
    dynamic, static = folder.formatting
    commands = [
        dynamic,
        [*static, "--standalone"],
        [*static, "-I", f"1@localhost:9093:{DIRECTORY}"],
        [*dynamic, "-s", "-f", "kraft.version=0"],
        [*static, "-f", "kraft.version=1"],
        [*static, "-f", "metadata.version=20", "-r", "3.9"],
        [*static, "-f", "bogus=1"],
        [*static, "-f", "group.version=9"],
        [*static, "-f", "group.version=x"],
        [*static, "-f", "group.version"],
        [*static, "-r", "3.9", "-f", "eligible.leader.replicas.version=1"],
        [*static, "-r", "3.2"],
        [*static, "-r", "4.4-IV0"],
        ["feature-dependencies", "-f", "foo=1"],
        ["feature-dependencies", "-f", "group.version=9"],
        [*static, "-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=p]"],
        *(
            [*static, "-S", user]
            for user in (
                "SCRAM-SHA-1=[name=a,password=p]",
                "SCRAM-SHA-256=name=a",
                "SCRAM-SHA-256=[name=a,password=p",
                "SCRAM-SHA-256=[password=p]",
                "SCRAM-SHA-256=[name=a]",
                "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
                "SCRAM-SHA-256=[name=a,password=p,iterations=x]",
                "SCRAM-SHA-256=[name=a,password=p,iterations=4095]",
                "SCRAM-SHA-512=[name=a,password=p,iterations=16385]",
                "SCRAM-SHA-256=[name=a,password=p,z=1,y=2]",
                "SCRAM-SHA-256=[name=a,z=1]",
            )
        ),
    ]
    for command, theirs in zip(commands, folder.apache(*commands), strict=True):
        assert folder.moldau(command) == theirs, command
        assert not folder.data.exists()


def test_refusals_with_our_own_messages(folder: Folder) -> None:
    dynamic, static = folder.formatting
    commands = [
        [*static, "-f", "metadata.version=99"],
        [*dynamic, "-I", "foo"],
        [*dynamic, "-I", "1@localhost:9093"],
        [*dynamic, "-I", ""],
        ["info", "-c", "nowhere"],
        ["feature-dependencies", "-f", "metadata.version=99"],
        ["version-mapping", "-r", "xx"],
        [*static, "-S", "SCRAM-SHA-256"],
        [*static, "-S", "SCRAM-SHA-256=[name]"],
        [*static, "-S", "SCRAM-SHA-256=[name=a,password=p,salt=?]"],
        [*static, "-S", "SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword=?]"],
    ]
    for command, theirs in zip(commands, folder.apache(*commands), strict=True):
        ours = folder.moldau(command)
        assert (ours.code, ours.out) == (theirs.code, theirs.out) == (1, ""), command
        assert ours.complaint


def test_info_matches_apache_kafka(folder: Folder) -> None:
    info = ["info", "-c", folder.dynamic]
    listing = [["version-mapping"], ["version-mapping", "-r", "3.9"], ["version-mapping", "-r", "4.0.1"]]
    listing += [
        ["feature-dependencies", "-f", "metadata.version=30", "-f", "eligible.leader.replicas.version=1"]
    ]
    for command, theirs in zip([info, *listing], folder.apache(info, *listing), strict=True):
        assert folder.moldau(command) == theirs, command
    assert folder.moldau(["format", "-t", CLUSTER, "-c", folder.dynamic, "-s"]).code == 0
    again = ["format", "-t", CLUSTER, "-c", folder.dynamic, "-s"]
    for command in (info, again, [*again, "-g"], [*again[:2], "other", *again[3:], "-g"]):
        assert [folder.moldau(command)] == folder.apache(command), command
    shutil.rmtree(folder.data / "b")
    (folder.data / "a" / "meta.properties").unlink()
    assert [folder.moldau(info)] == folder.apache(info)
    meta = folder.data / "m" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    assert [folder.moldau([*again, "-g"])] == folder.apache([*again, "-g"])
    damaged = (
        "version=7\n",
        "version=1\ncluster.id=x\n",
        "version=1\ncluster.id=x\nnode.id=q\n",
        "garbage\n",
    )
    for text in damaged:
        meta.write_text(text)
        assert [folder.moldau(info)] == folder.apache(info), text


def test_apache_reads_and_starts_on_our_folder(folder: Folder, tmp_path: Path) -> None:
    cluster = ApacheCluster(data_dir=tmp_path / "node")
    with cluster:
        properties = tmp_path / "node" / "server.properties"
        kept = properties.read_text()
        cluster.stop()
        shutil.rmtree(tmp_path / "node" / "logs")
        assert folder.moldau(["format", "-t", CLUSTER, "-c", str(properties), "--standalone"]).code == 0
        snapshots = sorted(map(str, (tmp_path / "node" / "logs").rglob("*.checkpoint")))
        dump = java_command(
            jars(),
            "org.apache.kafka.tools.DumpLogSegments",
            "--cluster-metadata-decoder",
            "--files",
            ",".join(snapshots),
        )
        said = subprocess.run(dump, capture_output=True, text=True, timeout=60, check=True).stdout
        assert '"featureLevel":30' in said
        assert "KRaftVoters" in said
        cluster.start()
        assert properties.read_text() == kept
        assert cluster.running
        assert load_properties(tmp_path / "node" / "logs" / "meta.properties")["cluster.id"] == CLUSTER
