"""Kafka's tools on the folders and replicas of three nodes, leaders and followers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.testing import Cluster
from tests.harness.apache.node import java_command
from tests.harness.waiting import eventually
from tests.interop.cluster.test_java_cluster import active_controller, create
from tests.interop.conftest import JavaTool

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
SHELL = "org.apache.kafka.shell.MetadataShell"
VERIFY = "org.apache.kafka.tools.ReplicaVerificationTool"
_RECORD = re.compile(r"^\| offset: (\d+) .*?payload: (.*)$", re.MULTILINE)

_TOPIC = re.compile(r'"type":"TOPIC_RECORD".*?"name":"([^"]+)"')


@pytest.fixture(scope="module")
def cluster(libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    config = {"metadata.log.max.snapshot.interval.ms": 500}
    with Cluster(brokers=3, config=config, data_dir=tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_replica_verification_finds_no_lag(cluster: Cluster, libs: Path, tmp_path: Path) -> None:
    create(cluster, "verified", 3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for number in range(300):
        producer.produce("verified", str(number), partition=number % 3)
    assert producer.flush(30) == 0
    said = tmp_path / "said"
    options = ("--topics-include", "verified", "--report-interval-ms", "1000")
    with said.open("wb") as output:
        tool = subprocess.Popen(
            java_command(libs, VERIFY, "--broker-list", cluster.bootstrap_servers, *options),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wanted = re.compile(r"max lag is 0 for partition verified-\d at offset 100 among 3 partitions")
        eventually(lambda: wanted.search(said.read_text()), what="a report")
        assert "deleted" not in said.read_text()
        assert "mismatched" not in said.read_text()
    finally:
        tool.kill()
        tool.wait()


def test_metadata_logs_of_every_node_are_equal(cluster: Cluster, tool: JavaTool) -> None:
    """This test runs last: it kills the active controller and stops all nodes."""
    first = active_controller(cluster)
    for number in range(3):
        create(cluster, f"before-{number}", 2)
    cluster.kill(first)
    eventually(lambda: active_controller(cluster) not in (first, -1), what="another active controller")
    cluster.restart(first)
    create(cluster, "after", 2)
    folders = {node.id: next(node.data_dir.rglob("__cluster_metadata-0")) for node in cluster.nodes}
    eventually(lambda: all(len(snapshots(each)) > 1 for each in folders.values()), what="snapshots")
    cluster.stop()
    found = {number: records(tool, sorted(folder.glob("*.log"))) for number, folder in folders.items()}
    for number in (2, 3):
        common = found[1].keys() & found[number].keys()
        assert len(common) > 20
        assert {offset: found[1][offset] for offset in common} == {
            offset: found[number][offset] for offset in common
        }
    for folder in folders.values():
        latest = snapshots(folder)[-1]
        topics = {name for each in records(tool, [latest]).values() for name in _TOPIC.findall(each)}
        assert topics
        # The shell may list topics before it has loaded all records.
        eventually(
            lambda latest=latest, topics=topics: shell(tool, latest) >= topics,
            what="topics in the shell",
        )


def shell(tool: JavaTool, snapshot: Path) -> set[str]:
    """Return the names of the topics in the metadata shell."""
    said, code = tool(SHELL, "--snapshot", str(snapshot), "ls", "/image/topics/byName")
    assert code == 0, tool.stderr
    return set(said.split())


def snapshots(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.checkpoint"))


def records(tool: JavaTool, files: list[Path]) -> dict[int, str]:
    """Return the records by offset, as decoded by Kafka's reader."""
    said, code = tool(DUMP, "--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    assert code == 0, tool.stderr
    assert "Could not" not in said
    return {int(offset): payload for offset, payload in _RECORD.findall(said)}
