"""Clusters with tiered storage in a folder, topics with small segments, and what is in the folder."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.waiting import eventually

#: The smallest segments that Kafka allows.
SEGMENT_BYTES = 1 << 20
RECORD_BYTES = 100_000
_FIRST_STAMP = int(time.time() * 1000) - 300_000


def tiered_config(folder: Path, *, brokers: int = 1, **more: str) -> dict[str, str]:
    """Return the configs of brokers whose remote store is a folder, and which look often."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "moldau.tiered.stores.folder.FolderStore",
        "rsm.config.dir": str(folder),
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(min(3, brokers)),
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "remote.log.manager.task.interval.ms": "200",
        "log.retention.check.interval.ms": "200",
        "log.initial.task.delay.ms": "100",
        "log.segment.delete.delay.ms": "100",
        **more,
    }


def tiered_topic(
    bootstrap: str, topic: str, *, partitions: int = 1, replicas: int = 1, **configs: str
) -> None:
    """Create a topic that keeps hardly anything locally."""
    settings = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "local.retention.bytes": "1",
        **{name.replace("_", "."): value for name, value in configs.items()},
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas, config=settings)])[topic].result(30)


def payload(number: int) -> bytes:
    """Return the value of a record: its number, and bytes that cannot be compressed away."""
    return number.to_bytes(8, "big") * (RECORD_BYTES // 8)


def produce(bootstrap: str, topic: str, numbers: range, partition: int = 0, **config: object) -> None:
    """Produce one batch for each number."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.num.messages": 1, "acks": "all", **config}
    )
    failed: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(str(error))

    for number in numbers:
        producer.produce(
            topic,
            payload(number),
            str(number).encode(),
            partition,
            on_delivery=delivered,
            timestamp=stamp(number),
        )
    assert producer.flush(60) == 0
    assert failed == []


def stamp(number: int) -> int:
    """Return the timestamp of a record, a few minutes ago."""
    return _FIRST_STAMP + number


def consume(
    bootstrap: str, topic: str, start: int, count: int, partition: int = 0, **config: object
) -> list[int]:
    """Return the numbers of the records from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, partition, start)])
    found: list[int] = []

    def more() -> bool:
        message = consumer.poll(1.0)
        if message is None:
            return False
        error = message.error()
        if error is None:
            value = message.value() or b""
            number = int.from_bytes(value[:8], "big")
            assert value == payload(number)
            found.append(number)
        elif not error.retriable():
            raise AssertionError(str(error))
        return len(found) >= count

    try:
        eventually(more, timeout=60)
    finally:
        consumer.close()
    return found


def stored(folder: Path, topic: str, kind: str = "log") -> list[int]:
    """Return the start offsets of the segments of a topic in the remote folder."""
    paths = folder.glob(f"kafka-tiered-storage/{topic}-*/*.{kind}")
    return sorted(int(path.name.split("-")[0]) for path in paths)


def local(data_folder: Path, topic: str, partition: int = 0) -> list[int]:
    """Return the base offsets of the local segments of a partition."""
    return sorted(int(path.stem) for path in data_folder.glob(f"**/{topic}-{partition}/*.log"))
