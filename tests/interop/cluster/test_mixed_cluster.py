"""Apache Kafka and Moldau in one cluster: they replicate each other's metadata log and partitions and vote
for each other. A cluster is migrated from one to the other node by node, while clients continue.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.harness.apache.mixed_nodes import APACHE, MOLDAU, MixedNodes
from tests.harness.clients.exactly_once_workers import Workers
from tests.harness.folders.workload import read_all
from tests.harness.tools import Tools
from tests.harness.waiting import eventually

pytestmark = pytest.mark.interop

_TOPIC = "moving"
_PARTITIONS = 6
_CONFIG = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3}
#: The software of the nodes at first, and their replacement one after the other.
_JOURNEYS = {
    "from Apache Kafka to Moldau": (APACHE, MOLDAU),
    "from Moldau to Apache Kafka": (MOLDAU, APACHE),
}


class _Writer:
    """Write continuously with an idempotent producer and record the acknowledgements."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self.acknowledged: dict[tuple[str, int], dict[int, bytes]] = {}
        #: Records whose resent batch was a duplicate; librdkafka reports no offset for them.
        self.somewhere: set[bytes] = set()
        self.errors: list[KafkaError] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        return sum(len(each) for each in list(self.acknowledged.values()))

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.005):
            self._producer.produce(
                _TOPIC, str(number).encode(), partition=number % _PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        value, offset = bytes(message.value() or b""), message.offset()
        if offset is None or offset < 0:
            self.somewhere.add(value)
            return
        place = (str(message.topic()), int(message.partition() or 0))
        self.acknowledged.setdefault(place, {})[int(offset)] = value


@contextmanager
def _writing(bootstrap: str) -> Iterator[_Writer]:
    writer = _Writer(bootstrap)
    try:
        yield writer
    finally:
        writer.stop()


def _in_sync(tools: Tools) -> bool:
    lines = tools.good("kafka-topics", "--describe", "--topic", _TOPIC, "--under-replicated-partitions")
    return not any("Partition:" in line for line in lines)


def _wait_for_progress(writer: _Writer) -> None:
    before = writer.count
    eventually(lambda: writer.count > before + 50, timeout=60, what="records are acknowledged")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("journey", _JOURNEYS.values(), ids=_JOURNEYS)
def test_a_cluster_is_migrated_node_by_node(journey: tuple[str, str], libs: Path) -> None:
    first, then = journey
    with MixedNodes(dict.fromkeys((1, 2, 3), first), libs, _CONFIG) as nodes:
        tools = Tools(nodes.bootstrap_servers)
        tools.good(
            "kafka-topics", "--create", "--topic", _TOPIC, "--partitions", str(_PARTITIONS),
            "--replication-factor", "3", "--config", "min.insync.replicas=2",
        )  # fmt: skip
        with _writing(nodes.bootstrap_servers) as writer:
            _wait_for_progress(writer)
            for node in (1, 2, 3):
                nodes.replace(node, then)
                eventually(lambda: _in_sync(tools), timeout=60, what="every replica is in sync")
                _wait_for_progress(writer)
        assert writer.errors == []
        _check(nodes, writer)


@pytest.mark.timeout(300)
def test_a_mixed_cluster_survives_a_killed_node_of_each_software(libs: Path) -> None:
    with MixedNodes({1: MOLDAU, 2: APACHE, 3: MOLDAU}, libs, _CONFIG) as nodes:
        tools = Tools(nodes.bootstrap_servers)
        tools.good(
            "kafka-topics", "--create", "--topic", _TOPIC, "--partitions", str(_PARTITIONS),
            "--replication-factor", "3", "--config", "min.insync.replicas=2",
        )  # fmt: skip
        with _writing(nodes.bootstrap_servers) as writer:
            _wait_for_progress(writer)
            for node, software in ((1, MOLDAU), (2, APACHE), (3, MOLDAU)):
                nodes.end(node, kill=True)
                _wait_for_progress(writer)
                nodes.start(node, software)
                nodes.wait(node)
                eventually(lambda: _in_sync(tools), timeout=60, what="every replica is in sync")
        assert writer.errors == []
        _check(nodes, writer)


@pytest.mark.timeout(300)
def test_transactions_and_groups_continue_in_a_mixed_cluster(libs: Path) -> None:
    """Numbers are squared exactly once while coordinators and brokers change their software."""
    with MixedNodes({1: APACHE, 2: MOLDAU, 3: MOLDAU}, libs, _CONFIG) as nodes:
        tools = Tools(nodes.bootstrap_servers)
        for topic in ("numbers", "squares"):
            words = ("--topic", topic, "--partitions", "3", "--replication-factor", "3")
            tools.good("kafka-topics", "--create", *words, "--config", "min.insync.replicas=2")
        workers = Workers(2, nodes.bootstrap_servers, "numbers", "squares", "squarers")
        try:
            sent = _send_numbers(nodes.bootstrap_servers, 0)
            eventually(lambda: len(_squares(nodes)) >= sent, timeout=60, every=0.5, what="squares")
            for node, software, kill in ((1, MOLDAU, False), (2, APACHE, True), (3, APACHE, False)):
                sent = _send_numbers(nodes.bootstrap_servers, sent)
                nodes.replace(node, software, kill=kill)
                sent = _send_numbers(nodes.bootstrap_servers, sent)
                wanted = sent
                eventually(lambda n=wanted: len(_squares(nodes)) >= n, timeout=90, every=0.5, what="squares")
        finally:
            workers.stop()
        assert sorted(_squares(nodes)) == sorted(f"{n}:{n * n}".encode() for n in range(sent))


def _send_numbers(bootstrap: str, first: int, count: int = 60) -> int:
    """Send numbers; return their total."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(first, first + count):
        producer.produce("numbers", str(number), partition=number % 3)
    assert producer.flush(60) == 0
    return first + count


def _squares(nodes: MixedNodes) -> list[bytes]:
    """Return the committed squares."""
    found = read_all(nodes.bootstrap_servers, {("squares", partition): 1 for partition in range(3)})
    return [each.value or b"" for records in found.values() for each in records.values()]


def _check(nodes: MixedNodes, writer: _Writer) -> None:
    """Check that every acknowledged record is stored once, in the order it was sent."""
    ends = {place: max(records) + 1 for place, records in writer.acknowledged.items()}
    found = read_all(nodes.bootstrap_servers, ends)
    for place, records in writer.acknowledged.items():
        stored = {offset: each.value for offset, each in found[place].items()}
        assert records.items() <= stored.items()
        numbers = [int(value or b"-1") for _, value in sorted(stored.items())]
        assert numbers == sorted(set(numbers))
    everything = {each.value for records in found.values() for each in records.values()}
    assert writer.somewhere <= everything
