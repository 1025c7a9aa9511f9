"""Mirror, Spark and both brokers are killed in turn under load; afterwards the records are compared.

At least once, every record arrives and the order of first arrivals is that of the source; exactly once, the
copy equals the source.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.harness.mirror import Feed, MirrorProcess, mm2_properties, values_of
from tests.harness.processes import descendants
from tests.harness.waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

#: Records that must arrive between two kills.
_PROGRESS = 300


class Load:
    """Two clusters, a feed into one of them, and a mirror to the other."""

    def __init__(self, a: Cluster, b: Cluster, mirror: MirrorProcess, feed: Feed) -> None:
        self.a, self.b = a, b
        self.mirror = mirror
        self.feed = feed

    def copied(self) -> list[str]:
        with AdminClient(self.b.bootstrap_servers) as admin:
            if "a.load" not in admin.list_topics():
                return []
        return values_of(self.b.bootstrap_servers, "a.load")

    def progress(self) -> None:
        """Wait until records arrive."""
        before = len(self.copied())
        eventually(
            lambda: len(self.copied()) >= before + _PROGRESS,
            timeout=120,
            every=0.3,
            what=self.mirror.log[-3000:],
        )

    def finish(self) -> tuple[list[str], list[str]]:
        """Stop the feed; return the records of the source, and those of the target once the last is there."""
        self.feed.stop()
        source = values_of(self.a.bootstrap_servers, "load")
        eventually(
            lambda: self.copied()[-1:] == source[-1:], timeout=120, every=0.3, what=self.mirror.log[-3000:]
        )
        return source, self.copied()


def kill_mirror(load: Load) -> None:
    load.mirror.kill()
    load.mirror.start()


def kill_source(load: Load) -> None:
    load.a.kill()
    load.a.start()


def kill_target(load: Load) -> None:
    load.b.kill()
    load.b.start()


def kill_python_workers(load: Load) -> None:
    _kill(load, lambda command: "pyspark.daemon" in command or "pyspark/daemon" in command)


def kill_executors(load: Load) -> None:
    _kill(load, lambda command: "CoarseGrainedExecutorBackend" in command)


def _kill(load: Load, wanted: Callable[[str], bool]) -> None:
    found = [pid for pid, command in descendants(load.mirror.pid).items() if wanted(command)]
    assert found, descendants(load.mirror.pid)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run(
    tmp_path: Path, settings: dict[str, str], options: list[str], faults: list[Callable[[Load], None]]
) -> tuple[list[str], list[str]]:
    """Apply the faults one after the other; return the records of the source, and those of the target."""
    with Cluster() as a, Cluster() as b, AdminClient(a.bootstrap_servers) as admin:
        checked(admin.create_topics([NewTopic("load", 1)]))
        properties = mm2_properties(a.bootstrap_servers, b.bootstrap_servers, settings)
        mirror = MirrorProcess(tmp_path, properties, *options)
        with mirror:
            load = Load(a, b, mirror, Feed(a.bootstrap_servers, "load"))
            try:
                load.progress()
                for fault in faults:
                    fault(load)
                    load.progress()
                return load.finish()
            finally:
                load.feed.stop()


def test_in_this_process_at_least_once(tmp_path: Path) -> None:
    faults = [kill_source, kill_target, kill_mirror, kill_target, kill_source]
    source, copied = run(tmp_path, {}, ["--local"], faults)
    assert list(dict.fromkeys(copied)) == list(dict.fromkeys(source))


def test_on_spark_exactly_once(tmp_path: Path) -> None:
    settings = {"exactly.once.source.support": "enabled"}
    faults = [kill_python_workers, kill_target, kill_mirror, kill_source]
    source, copied = run(tmp_path, settings, ["--master", "local[1]"], faults)
    assert copied == source


def test_executors_of_a_cluster_exactly_once(tmp_path: Path) -> None:
    settings = {"exactly.once.source.support": "enabled"}
    faults = [kill_executors, kill_python_workers, kill_executors]
    source, copied = run(tmp_path, settings, ["--master", "local-cluster[1,1,1024]"], faults)
    assert copied == source


def test_a_mirror_whose_spark_has_ended_exits(tmp_path: Path) -> None:
    with Cluster() as a, Cluster() as b:
        properties = mm2_properties(a.bootstrap_servers, b.bootstrap_servers, {})
        mirror = MirrorProcess(tmp_path, properties, "--master", "local[1]").start()
        try:
            eventually(lambda: any("java" in each for each in descendants(mirror.pid).values()))
            processes = descendants(mirror.pid)
            for pid, command in processes.items():
                if "SparkSubmit" in command:
                    os.kill(pid, signal.SIGKILL)
            assert mirror.wait(60) == 1, mirror.log[-3000:]
            assert "Spark has ended" in mirror.log
            eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes), timeout=30)
        finally:
            mirror.kill()
