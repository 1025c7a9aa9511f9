"""Fill and read the topics of a test."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.waiting import eventually


def create(servers: str, partitions: int, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result(60)


def produce(servers: str, topic: str, values: Iterable[bytes]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value, key=value[:20])
        producer.poll(0)
    assert producer.flush(60) == 0


def committed(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes]]]:
    """Return all committed records: key, value and headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ended = [], set()
        while len(ended) < len(partitions):
            message = consumer.poll(60)
            assert message is not None, f"{topic} does not answer"
            if message.error() is None:
                found.append((message.key(), message.value(), dict(message.headers() or ())))
            elif message.error().name() == "_PARTITION_EOF":
                ended.add(message.partition())
        return found
    finally:
        consumer.close()


def wait_for(servers: str, topic: str, count: int, timeout: float = 180.0) -> list[bytes | None]:
    """Wait for this many values and return them; more would be duplicates."""

    def read() -> list[bytes | None]:
        values = [value for _, value, _ in committed(servers, topic)]
        return values if len(values) >= count else []

    return eventually(read, timeout=timeout, every=0.5, what=f"{count} records in {topic}")


def orders(start: int, end: int) -> list[bytes]:
    return [json.dumps({"id": number, "amount": number * 1.0}).encode() for number in range(start, end)]


def ids(values: Iterable[bytes | None]) -> list[Any]:
    return sorted(json.loads(value or b"{}")["id"] for value in values)


#: The command as a user's shell finds it.
COMMAND = [sys.executable, "-m", "moldau.cli.main", "pipeline"]
