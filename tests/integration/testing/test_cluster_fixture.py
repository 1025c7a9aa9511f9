"""`moldau.testing`: nodes come quickly, go for certain and leave nothing behind, whatever happens."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.local.launcher import Launcher
from moldau.testing import Cluster, NodeFailed
from moldau.testing.link_control import ENTRY_POINT
from tests.harness.nodes.process import ON_LINUX, open_files
from tests.harness.waiting import eventually


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(*pids: int) -> None:
    eventually(lambda: not any(map(exists, pids)), what=f"processes {pids} are gone")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


class TestLife:
    def test_kill_restart_and_stop_keep_folder_and_port(self, cluster: Cluster) -> None:
        port, first, folder = cluster.port, cluster.pid, cluster.data_dir
        cluster.kill()
        assert not cluster.running and cluster.exit_code == -signal.SIGKILL
        assert not exists(first), "it is not even a zombie"
        cluster.restart()
        assert cluster.running and cluster.exit_code is None and cluster.pid != first
        cluster.restart()
        cluster.stop()
        assert cluster.exit_code == 0
        assert (cluster.port, cluster.data_dir) == (port, folder)

    def test_ports_and_locks_are_free_after_kill(self, cluster: Cluster) -> None:
        for _ in range(10):
            cluster.kill()
            with socket.create_server(("127.0.0.1", cluster.port)):
                pass
            cluster.start()

    def test_temporary_folder_is_removed_and_data_dir_kept(self, tmp_path: Path) -> None:
        with Cluster() as temporary, Cluster(data_dir=tmp_path / "kept") as kept:
            pass
        with pytest.raises(RuntimeError, match="no data folder"):
            assert temporary.data_dir
        assert kept.exit_code == 0, "a node whose data stays is shut down in order"
        with Cluster(data_dir=tmp_path / "kept") as again:
            assert again.log_file.read_text().count("is ready") == 2

    def test_without_a_context(self) -> None:
        cluster = Cluster()
        with pytest.raises(RuntimeError, match="no listener PLAINTEXT"):
            assert cluster.bootstrap_servers
        with pytest.raises(RuntimeError, match="not running"):
            cluster.stop()
        assert cluster.start() is cluster.start()
        folder, port = cluster.data_dir, cluster.port
        cluster.close()
        cluster.close()
        assert not folder.exists() and not cluster.running
        cluster.start()
        assert cluster.running and cluster.port == port and cluster.data_dir != folder
        cluster.close()

    def test_relative_data_dir_is_resolved_by_the_test_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with Cluster(data_dir="mine", config={"log.dirs": "elsewhere/logs"}):
            assert (tmp_path / "mine" / "node.log").exists()
            assert (tmp_path / "elsewhere" / "logs" / "meta.properties").exists()

    def test_restart_waits_for_a_port_in_use(self, cluster: Cluster) -> None:
        cluster.kill()
        taken = socket.create_server(("127.0.0.1", cluster.port))
        threading.Timer(0.4, taken.close).start()
        cluster.start()


class TestFailedStarts:
    def test_failed_start_reports_the_reason(self) -> None:
        with pytest.raises(NodeFailed, match=r"num\.partitions"):
            Cluster(config={"num.partitions": 0}).start()

    def test_failed_start_leaves_no_process_or_folder(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with pytest.raises(NodeFailed), Cluster(config={"num.partitions": 0}):
            pass
        assert list(tmp_path.iterdir()) == []

    def test_start_timeout_kills_the_node_and_quotes_its_log(self) -> None:
        cluster = Cluster(start_timeout=0)
        with pytest.raises(NodeFailed, match="not ready within 0 s"):
            cluster.start()
        assert not cluster.running
        cluster.close()

    def test_interrupted_start_kills_the_node(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pids = []

        def interrupted(process: object, timeout: float) -> dict[str, int]:
            eventually(lambda: "pid" in process._reported or process._receive(0), what="a pid")  # type: ignore[attr-defined]
            pids.append(process.pid)  # type: ignore[attr-defined]
            raise KeyboardInterrupt

        monkeypatch.setattr("moldau.local.launcher.NodeProcess.wait_ready", interrupted)
        with pytest.raises(KeyboardInterrupt), Cluster():
            pass
        gone(*pids)


class TestNothingIsLeft:
    def test_dropped_cluster_ends_its_nodes(self) -> None:
        cluster = Cluster().start()
        pid, folder = cluster.pid, cluster.data_dir
        del cluster
        gc.collect()
        gone(pid)
        eventually(lambda: not folder.exists(), what="the folder is gone")

    @pytest.mark.skipif(not ON_LINUX, reason="/proc")
    def test_clusters_leak_no_descriptors_or_zombies(self, cluster: Cluster) -> None:
        ours, launcher = open_files(os.getpid()), Launcher.shared(ENTRY_POINT)._process.pid
        theirs = open_files(launcher)
        nodes = children_of(launcher)
        for _ in range(10):
            with Cluster() as other:
                other.kill()
                other.restart()
        gc.collect()
        assert open_files(os.getpid()) <= ours
        assert open_files(launcher) == theirs
        assert children_of(launcher) == nodes

    def test_nodes_end_when_the_test_process_is_killed(self, tmp_path: Path) -> None:
        child = run_script(
            """
            import os, time
            from moldau.testing import Cluster
            from moldau.local.launcher import Launcher
            from moldau.testing.link_control import ENTRY_POINT
            clusters = [Cluster().start(), Cluster().start()]
            if not os.fork():    # a child that inherits every socket and lives on
                time.sleep(4)
                os._exit(0)
            for cluster in clusters:
                print(cluster.pid, cluster.data_dir)
            print(Launcher.shared(ENTRY_POINT)._process.pid, "-", flush=True)
            time.sleep(60)
            """,
            lines=3,
        )
        child.process.kill()
        child.process.wait()
        gone(*[int(line.split()[0]) for line in child.lines])
        assert not any(Path(line.split()[1]).exists() for line in child.lines)

    def test_nodes_end_when_the_test_process_exits(self) -> None:
        child = run_script(
            """
            from moldau.testing import Cluster
            cluster = Cluster().start()
            print(cluster.pid, cluster.data_dir, flush=True)
            """,
            lines=1,
        )
        assert child.process.wait(60) == 0
        pid, folder = child.lines[0].split()
        assert not exists(int(pid)) and not Path(folder).exists()


class TestManyAtOnce:
    def test_clusters_start_from_several_threads(self) -> None:
        clusters = [Cluster() for _ in range(6)]
        threads = [threading.Thread(target=cluster.start) for cluster in clusters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({cluster.port for cluster in clusters}) == 6
        clusters[0].kill()
        assert [cluster.running for cluster in clusters] == [False] + [True] * 5
        for cluster in clusters:
            cluster.close()

    def test_forked_child_starts_its_own_launcher(self, cluster: Cluster) -> None:
        child = run_script(
            """
            import os
            from moldau.testing import Cluster
            first = Cluster().start()
            child = os.fork()
            if not child:
                with Cluster() as second:
                    second.kill()
                    second.restart()
                os._exit(0 if first.running else 1)
            assert os.waitpid(child, 0)[1] == 0
            first.restart()
            print("fine", flush=True)
            """,
            lines=1,
        )
        assert child.lines == ["fine"]
        assert child.process.wait(60) == 0

    def test_dead_launcher_is_replaced(self) -> None:
        # In a process of its own: the launcher serves all nodes of a process, the other tests' too.
        child = run_script(
            """
            import time
            from moldau.testing import Cluster
            from moldau.local.launcher import Launcher
            from moldau.testing.link_control import ENTRY_POINT
            with Cluster() as cluster:
                launcher = Launcher.shared(ENTRY_POINT)._process
                launcher.terminate()
                launcher.wait(60)
                deadline = time.monotonic() + 60
                while cluster.running and time.monotonic() < deadline:
                    time.sleep(0.01)
                print("gone" if not cluster.running else "still there")
                cluster.start()
                print("again" if cluster.running else "not there", flush=True)
            """,
            lines=2,
        )
        assert child.lines == ["gone", "again"]
        assert child.process.wait(60) == 0


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


class Child:
    def __init__(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        self.process = process
        self.lines = lines


def run_script(script: str, lines: int) -> Child:
    """A test process of another user, as far as it has printed so many lines."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        printed = [output.readline().strip() for _ in range(lines)]
    assert all(printed), "the script ended early"
    return Child(process, printed)
