"""`kill -9` under load: acknowledged records are stored once and in order, and indexes are consistent."""

from __future__ import annotations

import random
import threading
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.folders.log_folder import check_partition_folder
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import create_and_wait, fetch, produce
from tests.integration.conftest import Node, StartNode

PARTITIONS = 3
ROUNDS = 6
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}


class Load:
    """An idempotent producer that runs continuously and records every acknowledgement."""

    def __init__(self, bootstrap: str, topic: str, codec: str) -> None:
        self.acknowledged: dict[int, list[tuple[int, int]]] = {p: [] for p in range(PARTITIONS)}
        self.failures: list[KafkaError] = []
        self.sent = 0
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 2,
                "batch.num.messages": 200,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0, "some records were neither delivered nor refused"

    def count(self) -> int:
        return sum(len(offsets) for offsets in self.acknowledged.values())

    def _run(self) -> None:
        padding = "x" * 200
        while not self._stopping.is_set():
            value = f"{self.sent}:{padding}"
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key=str(self.sent),
                    partition=self.sent % PARTITIONS,
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                self._producer.poll(0.01)
                continue
            self.sent += 1
            self._producer.poll(0)
            if self.sent % 50 == 0:
                # Tens of thousands of records per second are enough, and quick to read.
                time.sleep(0.002)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        number = int(message.value().split(b":")[0])
        self.acknowledged[message.partition()].append((message.offset(), number))


def read_all(bootstrap: str, topic: str, partition: int) -> list[tuple[int, int]]:
    settings = {"group.id": "check", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found: list[tuple[int, int]] = []
    while not found or found[-1][0] < end - 1:
        wanted = end - 1 - found[-1][0] if found else end
        messages = consumer.consume(min(wanted, 10_000), timeout=60)
        assert messages, f"nothing more after {found[-1:]} of {end}"
        for message in messages:
            assert message.error() is None, message.error()
            found.append((message.offset(), int(message.value().split(b":")[0])))
    consumer.close()
    return found


def create(bootstrap: str, topic: str) -> None:
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1, config=SMALL_SEGMENTS)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(60)


def crash_under_load(node: Node, load: Load, randomness: random.Random) -> None:
    before = load.count()
    eventually(lambda: load.count() > before + 500, timeout=60, what="the producer gets acknowledgements")
    time.sleep(randomness.uniform(0.0, 0.4))
    node.kill()
    time.sleep(randomness.uniform(0.0, 0.2))
    node.restart()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_acknowledged_records_survive_crashes_in_order_and_once(
    start_node: StartNode, topic: str, codec: str
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    node = start_node()
    create(node.bootstrap_servers, topic)
    load = Load(node.bootstrap_servers, topic, codec)
    for _ in range(ROUNDS):
        crash_under_load(node, load, randomness)
    before = load.count()
    eventually(lambda: load.count() > before, timeout=60, what="the producer continues after the last crash")
    load.stop()
    assert not load.failures
    for partition in range(PARTITIONS):
        found = read_all(node.bootstrap_servers, topic, partition)
        assert [offset for offset, _ in found] == list(range(len(found))), "offsets without a gap"
        numbers = [number for _, number in found]
        assert numbers == list(range(partition, load.sent, PARTITIONS)), "every record once, in order"
        assert sorted(load.acknowledged[partition]) == found, "at the offsets that were acknowledged"
    node.kill()
    node.restart()
    node.stop()
    for partition in range(PARTITIONS):
        check_partition_folder(node.data_dir / "logs" / f"{topic}-{partition}")


def test_a_clean_shutdown_needs_no_recovery_and_loses_nothing(start_node: StartNode, topic: str) -> None:
    node = start_node()
    create(node.bootstrap_servers, topic)
    load = Load(node.bootstrap_servers, topic, "gzip")
    eventually(lambda: load.count() > 1000, timeout=60)
    node.restart()
    before = load.count()
    eventually(lambda: load.count() > before, timeout=60)
    load.stop()
    for partition in range(PARTITIONS):
        found = read_all(node.bootstrap_servers, topic, partition)
        assert [number for _, number in found] == list(range(partition, load.sent, PARTITIONS))
    node.stop()
    assert (node.data_dir / "logs" / ".kafka_cleanshutdown").exists()


def test_topics_and_configs_survive_a_crash_as_soon_as_they_are_acknowledged(start_node: StartNode) -> None:
    node = start_node()
    made: list[str] = []
    for n in range(6):
        name = f"made-{n}"
        create(node.bootstrap_servers, name)
        made.append(name)
        node.kill()
        node.restart()
        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        assert set(made) <= set(admin.list_topics(timeout=60).topics)


DAMAGES = {
    "garbage after the end": lambda log: log.write_bytes(log.read_bytes() + random.Random(1).randbytes(500)),
    "zeros after the end": lambda log: log.write_bytes(log.read_bytes() + bytes(4096)),
    "half a batch after the end": lambda log: log.write_bytes(log.read_bytes() + log.read_bytes()[:40]),
    "indexes gone": lambda log: [log.with_suffix(suffix).unlink() for suffix in (".index", ".timeindex")],
    "invalid indexes": lambda log: [
        log.with_suffix(suffix).write_bytes(random.Random(2).randbytes(size))
        for suffix, size in ((".index", 80), (".timeindex", 120))
    ],
    "a bit of the last batch flipped": lambda log: log.write_bytes(log.read_bytes()[:-3] + b"\xff\xff\xff"),
    "the last batch truncated": lambda log: log.write_bytes(log.read_bytes()[:-7]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tail_is_truncated_and_the_rest_is_served(
    start_node: StartNode, topic: str, damage: str
) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, topic)
    for n in range(100):
        assert produce(node.bootstrap_servers, topic, batch([(b"k", f"{n}:".encode())])).base_offset == n
    node.kill()
    folder = node.data_dir / "logs" / f"{topic}-0"
    DAMAGES[damage](folder / "00000000000000000000.log")
    node.restart()
    left = 99 if "last batch" in damage else 100
    eventually(lambda: fetch(node.bootstrap_servers, topic).error_code == 0, what="the partition is served")
    assert read_all(node.bootstrap_servers, topic, 0) == [(n, n) for n in range(left)]
    assert produce(node.bootstrap_servers, topic, batch([(b"k", b"1000:")])).base_offset == left
    node.stop()
    assert check_partition_folder(folder) == left + 1
