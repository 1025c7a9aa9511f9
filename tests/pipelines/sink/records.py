"""Committed records of topics, read with another client."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Topics


def committed(topics: Topics, *names: str) -> list[Any]:
    """Return all records of the topics by partition, in offset order."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": topics.bootstrap_servers,
            "group.id": "not-used",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    known = consumer.list_topics(timeout=20).topics
    partitions = [
        confluent_kafka.TopicPartition(name, index, confluent_kafka.OFFSET_BEGINNING)
        for name in names
        for index in known[name].partitions
    ]
    found: list[Any] = []
    try:
        consumer.assign(partitions)
        ended: set[tuple[str, int]] = set()
        deadline = time.monotonic() + 30
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, (
                f"read {len(found)} records, {ended} of {partitions} to the end"
            )
            for message in consumer.consume(10_000, 0.1):
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add((message.topic(), message.partition()))
    finally:
        consumer.close()
    return sorted(found, key=lambda message: (message.topic(), message.partition(), message.offset()))


def numbers(topics: Topics, *names: str) -> list[int]:
    """Return the values of the records, which are numbers."""
    return sorted(int(message.value()) for message in committed(topics, *names))


def written(topics: Topics, *names: str) -> int:
    """Return the sum of the last stable offsets of all partitions."""
    known = topics.admin.describe_topics(names)
    wanted = {
        TopicPartition(name, each.partition): OffsetSpec.LATEST
        for name, found in checked(known).items()
        for each in found.partitions
    }
    return sum(
        each.offset for each in checked(topics.admin.list_offsets(wanted, read_committed=True)).values()
    )


def wait_for_more(topics: Topics, *names: str, timeout: float = 90) -> None:
    """Wait until more records are committed."""
    before = written(topics, *names)
    eventually(lambda: written(topics, *names) > before, timeout=timeout, every=0.1, what=f"more in {names}")
