"""Lag verdicts on Kafka Streams applications, in classic and in streams groups (KIP-1071) of Apache Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.lag.evaluation.rules import Status
from tests.harness.apache.node import ApacheCluster
from tests.harness.lag.scene import LagScene, observed
from tests.interop import jars

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parents[1] / "java" / "StreamsReader.java"


@contextmanager
def application(scene: LagScene, bootstrap: str, protocol: str, state: Path) -> Iterator[None]:
    """Run the application until it processes records."""
    try:
        libs = jars.streams_libs()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    classes = jars.compiled(SOURCE, libs, jars.KAFKA)
    command = [
        "java",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xmx256m",
        "-cp",
        f"{classes}:{libs}/*",
    ]
    arguments = [SOURCE.stem, bootstrap, scene.group, scene.topic, protocol, str(state)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        while "RUNNING" not in (line := process.stdout.readline()):
            assert line, "the application has ended"
        yield
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_streams_application(apache: ApacheCluster, protocol: str, tmp_path: Path) -> None:
    bootstrap = apache.bootstrap_servers
    scene = LagScene(bootstrap, partitions=2)
    scene.produce(5)
    with observed(bootstrap) as monitor, application(scene, bootstrap, protocol, tmp_path):
        fine = scene.lag(
            monitor, lambda lag: lag.total_lag == 0 and [each.committed for each in lag.partitions] == [5, 5]
        )
        assert (fine.type, fine.members) == (protocol, 1)
        assert all(each.member_id and each.client_id for each in fine.partitions)
        scene.produce(1, b"block")
        stalled = scene.until(monitor, Status.STALL)
        assert stalled.reason and stalled.member_id in stalled.reason
