"""`moldau dev --brokers 3`: three nodes and their supervisor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.harness.wire.requests import wait_until_known


class Dev:
    """The running command and the lines it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.shown: list[str] = []
        while not self.shown or self.shown[-1] != "Press Ctrl-C to stop.":
            self.shown.append(self.line())
        text = "\n".join(self.shown)
        [self.bootstrap] = re.findall(r"bootstrap\.servers +(\S+)", text)
        self.pids = [int(pid) for pid in re.findall(r"process (\d+)", text)]

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"ended early: {self.shown} {self.process.communicate()[1]}"
        return line.rstrip("\n")

    def stop(self) -> str:
        """Press Ctrl-C and return the remaining output."""
        os.killpg(self.process.pid, signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, err) == (0, ""), err
        return out


def dev(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "moldau", "dev", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Dev]:
    process = dev(folder, *options)
    try:
        yield Dev(process)
    finally:
        process.kill()
        process.communicate()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def in_sync(bootstrap: str, topic: str, *nodes: str) -> bool:
    found = describe(bootstrap, topic)
    return bool(found) and all(set(nodes) <= set(row["Isr"].split(",")) for row in found)


def describe(bootstrap: str, topic: str) -> list[dict[str, str]]:
    """Return the described partitions as dictionaries of columns."""
    done = run_tool("kafka-topics", "--bootstrap-server", bootstrap, "--describe", "--topic", topic)
    rows = [line for line in done.lines if line.startswith("\t")]
    return [dict(cell.split(": ", 1) for cell in row.strip().split("\t") if ": " in cell) for row in rows]


def test_killed_node_is_reported_and_can_be_restarted(tmp_path: Path) -> None:
    with running(tmp_path, "--brokers", "3", "--port", "0", "--set", "num.partitions=2") as cluster:
        assert cluster.shown[0].endswith("is ready: 3 nodes.") and len(set(cluster.pids)) == 3
        created = run_tool(
            "kafka-topics",
            *("--bootstrap-server", cluster.bootstrap, "--create", "--topic", "orders"),
            *("--replication-factor", "3"),
        )
        assert created.out == "Created topic orders.\n", created
        wait_until_known(cluster.bootstrap, "orders")
        os.kill(cluster.pids[1], signal.SIGKILL)
        assert cluster.line() == "Node 2 has exited (killed by SIGKILL). The others keep running."
        [command] = re.findall(r"Start it again: (.*)$", cluster.line())
        partitions = eventually(
            lambda: [row for row in describe(cluster.bootstrap, "orders") if "2" not in row["Isr"]],
            what="node 2 is missed",
        )
        assert len(partitions) <= 2 and all(row["Leader"] in "13" for row in partitions)
        tool, file = command.split()
        with subprocess.Popen([sys.executable, "-m", "moldau", tool, file], cwd=tmp_path) as again:
            eventually(
                lambda: in_sync(cluster.bootstrap, "orders", "2"),
                what="node 2 has caught up",
            )
            again.terminate()
        assert cluster.stop() == "Stopped.\n"
        assert not any(map(is_there, cluster.pids))

    with running(tmp_path) as later:
        assert later.bootstrap == cluster.bootstrap, "the same cluster without being told"
        eventually(
            lambda: in_sync(later.bootstrap, "orders", "1", "2", "3"),
            what="all in sync",
        )
        assert len(describe(later.bootstrap, "orders")) == 2
        later.stop()


def test_nodes_exit_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, "--brokers", "2", "--port", "0") as cluster:
        cluster.process.kill()
        eventually(lambda: not any(map(is_there, cluster.pids)), what="all nodes are gone")


def test_server_stop_stops_one_node_by_its_id(tmp_path: Path) -> None:
    """`kafka-server-stop` finds the nodes and not their supervisor; the id is unique on this machine."""
    identity = str(2**31 - 1 - os.getpid())
    with running(tmp_path, "--brokers", "2", "--port", "0", "--data", "elsewhere") as cluster:
        assert run_tool("kafka-server-stop", "--node-id", identity).code == 1
        assert all(map(is_there, cluster.pids)) and cluster.process.poll() is None
        cluster.stop()


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["--brokers", "2"], "holds the data of a cluster of 3 brokers. Start it with --brokers 3"),
        (["--port", "1"], "uses the ports from"),
        (["--set", "num.partitions=0"], "num.partitions"),
    ],
)
def test_invalid_options_are_reported_in_one_sentence(three: Path, options: list[str], printed: str) -> None:
    out, err = (process := dev(three, *options)).communicate(timeout=60)
    assert (process.returncode, out) == (1, ""), err
    assert printed in err.replace("\n", " ") and "Traceback" not in err


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a cluster of three nodes was started before."""
    folder = tmp_path_factory.mktemp("three")
    with running(folder, "--brokers", "3", "--port", "0") as cluster:
        cluster.stop()
    return folder


def test_folder_of_a_single_node_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("")
    out, err = (process := dev(tmp_path, "--brokers", "3", "--port", "0")).communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "holds the data of a single node" in err


def test_port_in_use_is_reported_in_one_sentence(three: Path) -> None:
    with running(three) as cluster:
        port = cluster.bootstrap.split(",")[0].removeprefix("localhost:")
        out, err = (process := dev(three)).communicate(timeout=60)
        assert (process.returncode, out) == (1, "")
        assert err.startswith(f"Port {port} is in use.") and "Traceback" not in err
        cluster.stop()
