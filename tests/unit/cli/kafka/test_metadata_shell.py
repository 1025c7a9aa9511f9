"""The metadata shell: its tree, paths and patterns, commands, completion, and where it reads from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from moldau.base.ids import format_uuid
from moldau.cli.kafka.metadata_shell.command import main
from moldau.cli.kafka.metadata_shell.commands import Shell, ShellExit, in_columns
from moldau.cli.kafka.metadata_shell.formats import provenance_text, token_text
from moldau.cli.kafka.metadata_shell.paths import components, find, glob_matcher
from moldau.cli.kafka.metadata_shell.prompt import candidates
from moldau.cli.kafka.metadata_shell.tree import Root
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import encode_record
from moldau.protocol.stored.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from moldau.quorum.batches import data_batch
from moldau.quorum.snapshots import SnapshotId, encode_snapshot
from tests.unit.metadata.builders import broker, features, image_of, topic, uid

RECORDS = [
    *features(),
    broker(1),
    broker(2, rack="r1", fenced=True),
    RegisterControllerRecord(controller_id=1, incarnation_id=uid(5)),
    *topic(7, "orders", 2, (1, 2)),
    *topic(8, "other"),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
    ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
    ClientQuotaRecord(
        entity=[
            EntityData(entity_type="user", entity_name=None),
            EntityData(entity_type="client-id", entity_name="a(b"),
        ],
        key="producer_byte_rate",
        value=1e7,
        remove=False,
    ),
    AccessControlEntryRecord(
        id=uid(9),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=3,
    ),
    UserScramCredentialRecord(
        name="bob", mechanism=1, salt=b"\x01\xff", stored_key=b"\x02", server_key=b"\x03", iterations=4096
    ),
]


@pytest.fixture
def image() -> MetadataImage:
    return image_of(*RECORDS)


@pytest.fixture
def shell(image: MetadataImage) -> Shell:
    tree = Root(image, 1_700_000_000_840).directory()
    return Shell(lambda: tree)


def run(shell: Shell, line: str) -> list[str]:
    return list(shell.run(line.split()))


def test_the_tree_is_kafkas(shell: Shell) -> None:
    assert run(shell, "ls /") == ["image", "local"]
    assert run(shell, "ls /image") == [
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "provenance",
        "scram",
        "topics",
    ]
    assert run(shell, "cat /image/cluster/brokers/2") == [
        f"BrokerRegistration(id=2, epoch=10, incarnationId={format_uuid(uid(200))}, listeners=[Endpoint("
        "listenerName='PLAINTEXT', securityProtocol=PLAINTEXT, host='localhost', port=9092)], "
        "supportedFeatures={metadata.version: 7-30}, rack=Optional[r1], fenced=true, "
        "inControlledShutdown=false, isMigratingZkBroker=false, "
        f"directories=[{format_uuid(uid(102))}], cordonedDirectories=null)"
    ]
    assert run(shell, "cat /image/cluster/controllers/1") == [
        f"ControllerRegistration(id=1, incarnationId={format_uuid(uid(5))}, zkMigrationReady=false, "
        "listeners=[], supportedFeatures={})"
    ]
    assert run(shell, "cat /image/topics/byName/orders/1") == [
        f"PartitionRegistration(replicas=[1, 2], directories=[{format_uuid(uid(101))}, "
        f"{format_uuid(uid(102))}], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], "
        "lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
    ]
    assert run(shell, "tree /image/configs") == [
        "BROKER:",
        "  log.cleaner.threads:",
        "    2",
        "TOPIC:orders:",
        "  retention.ms:",
        "    5",
    ]
    assert run(shell, "tree /image/clientQuotas") == [
        "clientId(a\\(b)_user(<default>):",
        "  producer_byte_rate:",
        "    1.0E7",
    ]
    assert run(shell, f"cat /image/acls/byId/{format_uuid(uid(9))}") == [
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:bob, "
        "host=*, operation=READ, permissionType=ALLOW]"
    ]
    assert run(shell, "cat /image/scram/SCRAM-SHA-256/bob") == [
        "ScramCredentialData(salt=01ff, storedKey=02, serverKey=03, iterations=4096)"
    ]
    assert run(shell, "cat /image/features/metadataVersion /image/producerIds/nextProducerId") == [
        "Optional[4.3-IV0]",
        "-1",
    ]
    assert run(shell, "cat /image/provenance") == [
        f"offset {len(RECORDS) - 1}, epoch 1, time 2023-11-14T22:13:20.84Z[UTC]"
    ]


def test_short_ways(shell: Shell) -> None:
    assert run(shell, "ls /brokers") == ["1", "2"]
    assert run(shell, "cat /topics/orders/0") == run(shell, "cat /image/topics/byName/orders/0")
    assert run(shell, "cat /topics/*/name") == ["orders", "other"]


def test_an_empty_image_has_the_same_tree() -> None:
    tree = Root(MetadataImage.empty(), -1).directory()
    empty = Shell(lambda: tree)
    assert run(empty, "cat /image/features/metadataVersion") == ["Optional.empty"]
    assert run(empty, "cat /image/provenance") == ["offset -1, epoch -1, time 1969-12-31T23:59:59.999Z[UTC]"]
    assert run(empty, "ls /brokers") == []


def test_times_and_tokens() -> None:
    assert provenance_text(1, 2, 1000) == "offset 1, epoch 2, time 1970-01-01T00:00:01Z[UTC]"
    token = DelegationTokenRecord(
        owner="User:a", requester="User:b", renewers=["User:c"], token_id="t", issue_timestamp=1
    )
    assert token_text(token) == (
        "DelegationTokenDatatokenId=t(owner=User:a(tokenRequester=User:b(renewers=User:c, issueTimestamp=1, "
        "maxTimestamp=0), expiryTimestamp=0"
    )


def test_what_is_not_there(shell: Shell) -> None:
    assert run(shell, "cat /nope") == ["cat: /nope: No such file or directory."]
    assert run(shell, "cat /image") == ["cat: /image: Is a directory"]
    assert run(shell, "cat /image/provenance/x") == ["cat: /image/provenance/x: No such file or directory."]
    assert run(shell, "tree nope") == ["tree: nope: No such file or directory."]
    assert run(shell, "ls nope") == ["ls: nope: no such file or directory."]
    assert run(shell, "find nope") == ["find: nope: no such file or directory."]
    assert run(shell, "cd nope") == ["cd: nope: no such directory."]
    assert run(shell, "cd /image/provenance") == ["cd: /image/provenance: not a directory."]
    assert run(shell, "nope")[0].startswith("invalid choice: 'nope' (choose from 'cat', 'cd', ")
    assert run(shell, "cat") == ["too few arguments"]
    assert run(shell, "pwd x y") == ["unrecognized arguments: 'x y'"]
    assert run(shell, "") == []


def test_walking(shell: Shell) -> None:
    assert run(shell, "cd image/topics") == []
    assert run(shell, "pwd") == ["/image/topics"]
    assert run(shell, "find byName/other") == [
        "byName/other",
        "byName/other/0",
        "byName/other/id",
        "byName/other/name",
    ]
    assert run(shell, "ls ../cluster .") == [
        "cluster:",
        "brokers",
        "controllers",
        "\ntopics:",
        "byId",
        "byName",
    ]
    assert run(shell, "ls ../provenance ..")[:3] == ["provenance", "\nimage:", "acls"]
    run(shell, "cd ../../../..")
    assert run(shell, "pwd") == ["/"]
    assert run(shell, "find /local") == ["/local", "/local/commitId", "/local/version"]
    assert run(shell, "find")[:3] == [".", "./image", "./image/acls"]


def test_history_manual_and_exit(shell: Shell) -> None:
    shell.history += ["ls", "pwd", "history"]
    assert run(shell, "history") == ["    1  ls", "    2  pwd", "    3  history"]
    assert run(shell, "history 1") == ["    3  history"]
    assert run(shell, "history x") == ["argument numEntriesToShow: could not convert 'x' to Integer"]
    assert run(shell, "man ls")[0] == "ls: List metadata nodes.\n"
    assert run(shell, "man nope") == ["man: unknown command nope. Type help to get a list of commands."]
    assert any(line.startswith("  tree ") for line in run(shell, "help"))
    with pytest.raises(ShellExit):
        run(shell, "exit")


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("a*", ["a", "abc"], ["ba"]),
        ("a?c", ["abc"], ["ac", "abbc"]),
        ("{ab,cd}*", ["ab", "cdx"], ["a", "bcd"]),
        ("a.*", ["a.x"], ["abx"]),
        (r"\*?", ["*a"], ["ba"]),
    ],
)
def test_patterns(glob: str, matching: list[str], other: list[str]) -> None:
    matches = glob_matcher(glob)
    assert matches is not None
    assert all(map(matches, matching))
    assert not any(map(matches, other))


@pytest.mark.parametrize("glob", ["orders", "a.b", "a,b", "{a", "{a,{b}}", "a}"])
def test_components_that_mean_themselves(glob: str) -> None:
    assert glob_matcher(glob) is None


def test_paths() -> None:
    assert components("a/./b//../c", "/x") == ["x", "a", "c"]
    assert components("/../..") == []


def test_found_nodes_know_their_paths(image: MetadataImage) -> None:
    root = Root(image, 0).directory()
    assert [each.absolute for each in find(root, "/image/topics/*")] == [
        "/image/topics/byId",
        "/image/topics/byName",
    ]
    assert find(root, "/")[0].name == "/"


def test_columns() -> None:
    entries = ["a", "bb", "ccc", "d", "e"]
    assert list(in_columns(entries, None)) == entries
    assert list(in_columns(entries, 3)) == entries
    assert list(in_columns(entries, 20)) == ["a  bb  ccc  d  e"]
    assert list(in_columns(entries, 12)) == ["a   ccc  e", "bb  d    "]
    assert list(in_columns([], 20)) == []


def test_the_tab_key(shell: Shell) -> None:
    assert candidates(shell, "h") == ["help ", "history "]
    assert candidates(shell, "ls /im") == ["/image/"]
    assert candidates(shell, "cat /image/topics/byName/o") == [
        "/image/topics/byName/orders/",
        "/image/topics/byName/other/",
    ]
    assert candidates(shell, "cat /image/prov") == ["/image/provenance"]
    assert candidates(shell, "ls /bro") == ["/brokers/"]
    assert candidates(shell, "ls /brokers/") == ["/brokers/1", "/brokers/2"]
    run(shell, "cd /image")
    assert candidates(shell, "ls to") == ["topics/"]
    assert candidates(shell, "man l") == ["ls"]
    assert candidates(shell, "pwd x") == []
    assert candidates(shell, "nope x") == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A node's folder: a snapshot, and a log that goes on behind it."""
    metadata = tmp_path / "__cluster_metadata-0"
    metadata.mkdir()
    snapshot = encode_snapshot(RECORDS, 30, epoch=1, time_ms=5, last_contained_log_timestamp=5)
    (metadata / SnapshotId(100, 1).file_name).write_bytes(snapshot)
    before = data_batch([encode_record(topic(50, "forgotten")[0], 30)], 99, 1, 6)
    after = data_batch([encode_record(record, 30) for record in topic(60, "later")], 100, 2, 7000)
    (metadata / "00000000000000000050.log").write_bytes(b"not even read")
    (metadata / "00000000000000000099.log").write_bytes(before + after)
    return tmp_path


def test_a_folder_is_read_as_a_node_reads_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder, folder / "__cluster_metadata-0"):
        assert main(["--directory", str(path), "ls", "/topics"]) == 0
        assert capsys.readouterr().out.split() == ["later", "orders", "other"]
    assert main(["-d", str(folder), "cat", "/image/provenance"]) == 0
    assert capsys.readouterr().out == "offset 101, epoch 2, time 1970-01-01T00:00:07Z[UTC]\n"


def test_a_snapshot_is_read_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshot,) = folder.rglob("*.checkpoint")
    assert main(["--snapshot", str(snapshot), "ls", "/topics"]) == 0
    assert capsys.readouterr().out.split() == ["orders", "other"]


def test_commands_come_from_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("cd /brokers\nls 'unfinished\nls\n"))
    assert main(["-d", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Loading...",
        "Starting...",
        "No closing quotation",
        "1",
        "2",
    ]


def test_sources_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "00000000000000000000.log"
    damaged.write_bytes(data_batch([encode_record(RECORDS[0], 30)], 0, 1, 5)[:-1] + b"x")
    alone = tmp_path / "00000000000000000005.log"
    alone.write_bytes(data_batch([encode_record(topic(7, "a")[1], 30)], 5, 1, 5))
    (tmp_path / "empty").mkdir()
    for argv, sentence in (
        (["--snapshot", str(damaged), "ls"], "is damaged"),
        (["--snapshot", str(alone), "ls"], "cannot be read alone"),
        (["--snapshot", str(tmp_path / "nope"), "ls"], "No such file or directory"),
        (["--directory", str(tmp_path / "empty"), "ls"], "has neither a metadata log nor a snapshot"),
        (["--directory", str(tmp_path / "nope"), "ls"], "No such file or directory"),
        (["ls"], "one of the arguments --snapshot/-s --directory/-d --controllers/-c is required"),
    ):
        assert main(argv) == 1
        assert sentence in capsys.readouterr().err
