"""The results of scenes in a comparable form, and the recorded results of Kafka Streams.

For a table the last values are compared, for a stream all records in any order, each with its timestamp. Keys
and values are hexadecimal, so that windowed keys are compared byte by byte.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.harness.streams.inputs import TABLE_SCENES

RECORDED = Path(__file__).parent / "streams_results.tsv"


class Written(NamedTuple):
    """A record of an output topic; `value` is None for a tombstone."""

    topic: str
    key: str
    value: str | None
    timestamp: str


def comparable(scene: str, written: Iterable[Written]) -> list[Written]:
    if scene not in TABLE_SCENES:
        return sorted(written, key=str)
    last = {(each.topic, each.key): each for each in written}
    return sorted((each for each in last.values() if each.value is not None), key=str)


def recorded() -> dict[str, list[Written]]:
    """Return the recorded results by scene, in the form of `comparable`."""
    results: dict[str, list[Written]] = defaultdict(list)
    for line in RECORDED.read_text().splitlines():
        scene, topic, key, value, timestamp = line.split("\t")
        results[scene].append(Written(topic, key, value or None, timestamp))
    return results


def as_lines(results: dict[str, list[Written]]) -> str:
    return "".join(
        "\t".join([scene, *[field or "" for field in each]]) + "\n"
        for scene, found in results.items()
        for each in found
    )


def read(bootstrap_servers: str, topics: Iterable[str]) -> list[Written]:
    """Return all committed records of topics with one partition."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "results", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    partitions = [TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics]
    found, ended, deadline = [], 0, time.monotonic() + 60
    try:
        consumer.assign(partitions)
        while ended < len(partitions):
            assert time.monotonic() < deadline, "the end of the topics was not reached"
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                found.append(_written(message))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended += 1
    finally:
        consumer.close()
    return found


def _written(message: Any) -> Written:
    value = message.value()
    return Written(
        message.topic(),
        (message.key() or b"").hex(),
        None if value is None else value.hex(),
        str(message.timestamp()[1]),
    )
