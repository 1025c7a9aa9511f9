"""Java clients and Streams on three nodes of Moldau whose brokers and active controller are killed.

Acknowledged records are stored once and in order, and groups of both protocols read all of them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.testing import Cluster
from tests.harness.apache.node import QUICK_START
from tests.harness.folders.workload import read_all
from tests.harness.nodes.leaders import coordinator_of, leaders_of
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.interop import jars
from tests.interop.groups.test_java_groups import CONFIG, CONSUMER, COOPERATIVE, Member
from tests.interop.pipelines.test_kafka_streams import PARTITIONS as STREAMS_PARTITIONS
from tests.interop.pipelines.test_kafka_streams import Application

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SOURCE = Path(__file__).parents[1] / "java" / "SteadyProducer.java"
PARTITIONS = 6
TOPIC = "steady"
_COPIES = {"default.replication.factor": "3", "min.insync.replicas": "2"}


class Steady:
    """The producer in a separate process, and its output so far."""

    def __init__(self, bootstrap: str, said: Path) -> None:
        libs = jars.kafka_libs()
        classes = jars.compiled(SOURCE, libs, jars.KAFKA)
        java = ["java", *QUICK_START, "-Xmx100m", "-cp", f"{classes}:{libs}/*", SOURCE.stem]
        self._said = said
        with said.open("wb") as output:
            self._process = subprocess.Popen(
                [*java, TOPIC, str(PARTITIONS), f"bootstrap.servers={bootstrap}", "linger.ms=5"],
                stdout=output,
                stderr=subprocess.DEVNULL,
            )

    def printed(self, what: str) -> list[str]:
        pairs = (line.partition("\t") for line in self._said.read_text().splitlines())
        return [rest for first, tab, rest in pairs if tab and first == what]

    def acknowledged(self) -> dict[tuple[str, int], dict[int, int]]:
        """Return the number at each offset of each partition."""
        found: dict[tuple[str, int], dict[int, int]] = {}
        for line in self.printed("acknowledged"):
            partition, offset, number = map(int, line.split())
            found.setdefault((TOPIC, partition), {})[offset] = number
        return found

    def wait_for_progress(self) -> None:
        """Wait until every partition has acknowledged a new record."""
        after = len(self.printed("acknowledged"))

        def since() -> set[str]:
            return {line.split()[0] for line in self.printed("acknowledged")[after + 10 :]}

        eventually(lambda: len(since()) == PARTITIONS, what="all partitions accept records")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self.printed("stopped") == [""]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def create(cluster: Cluster, name: str, partitions: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=3)
    with Wire(f"127.0.0.1:{cluster.brokers[0].port}") as wire:
        (created,) = wire.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7).topics
    assert created.error_code == 0, created
    eventually(lambda: len(leaders_of(cluster, name)) == partitions, what=f"{name} has leaders")


def active_controller(cluster: Cluster) -> int:
    part = RequestPartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name="__cluster_metadata", partitions=[part])]
    )
    with Wire(f"127.0.0.1:{next(node for node in cluster.brokers if node.running).port}") as wire:
        return int(wire.call(request, 2).topics[0].partitions[0].leader_id)


@pytest.fixture
def cluster(libs: Path) -> Iterator[Cluster]:
    with Cluster(brokers=3, config={**CONFIG, **_COPIES}) as started:
        yield started


def test_producer_and_groups_continue_while_brokers_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, TOPIC, PARTITIONS)
    groups = {"classic": COOPERATIVE, "consumer": CONSUMER}
    members = {
        f"{name}-{number}": Member(
            [TOPIC, f"bootstrap.servers={cluster.bootstrap_servers}", f"group.id={name}",
             *(f"{key}={value}" for key, value in settings.items())],
            tmp_path / f"{name}-{number}",
        )
        for name, settings in groups.items()
        for number in (1, 2)
    }  # fmt: skip
    # `commitSync` fails during a rebalance, so nothing is sent before all members have joined.
    eventually(
        lambda: all(len(member.owned()) == PARTITIONS // 2 for member in members.values()),
        timeout=60,
        what="half of the partitions each",
    )
    producer = Steady(cluster.bootstrap_servers, tmp_path / "steady")
    try:
        producer.wait_for_progress()
        for choose in (
            active_controller,
            lambda nodes: leaders_of(nodes, TOPIC)[0],
            lambda nodes: coordinator_of(nodes, "consumer"),
            lambda nodes: coordinator_of(nodes, "classic"),
        ):
            victim = choose(cluster)
            cluster.kill(victim)
            producer.wait_for_progress()
            cluster.restart(victim)
            producer.wait_for_progress()
        producer.stop()
        acknowledged = producer.acknowledged()
        everything = {number for each in acknowledged.values() for number in each.values()}
        for who in groups:
            eventually(lambda who=who: _read(members, who) >= everything, what=f"all, by {who}")
        assert producer.printed("failed") == []
        _check(cluster, acknowledged)
        dead = {name: each.complaints() for name, each in members.items() if each.process.poll() is not None}
        assert dead == {}
    finally:
        producer.kill()
        for member in members.values():
            member.kill()


def _read(members: dict[str, Member], group: str) -> set[int]:
    return {number for name, member in members.items() if name.startswith(group) for number in member.read()}


def _check(cluster: Cluster, acknowledged: dict[tuple[str, int], dict[int, int]]) -> None:
    stored = read_all(
        cluster.bootstrap_servers, {place: max(each) + 1 for place, each in acknowledged.items()}
    )
    for place, numbers in acknowledged.items():
        there = {offset: int(each.value or b"-1") for offset, each in stored[place].items()}
        assert numbers.items() <= there.items()
        in_order = [number for _, number in sorted(there.items())]
        assert in_order == sorted(set(in_order))


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_streams_count_exactly_once_while_brokers_are_killed(
    cluster: Cluster, tmp_path: Path, protocol: str
) -> None:
    application = Application(
        cluster,
        "exactly_once_v2",
        tmp_path,
        1,
        lambda topic: create(cluster, topic, STREAMS_PARTITIONS),
        (f"group.protocol={protocol}",),
    )
    try:
        for step in range(3):
            application.send(150)
            eventually(application.arrived, timeout=60, every=0.2, what=f"the counts before kill {step}")
            application.send(150)
            # While the new records are being processed.
            time.sleep(0.1 * step)
            victim = (
                coordinator_of(cluster, application.name) if step % 2 == 0 else active_controller(cluster)
            )
            cluster.kill(victim)
            eventually(application.arrived, timeout=60, every=0.2, what=f"the counts after kill {step}")
            cluster.restart(victim)
        assert application.counted() == application.expected()
    finally:
        application.stop()
