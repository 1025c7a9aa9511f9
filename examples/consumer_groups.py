"""One to five consumers share four partitions, and every way to commit.

Each step starts one consumer more in the same group and prints who has which partitions: the fifth has none
and waits for somebody to leave. Then offsets are committed automatically, synchronously, asynchronously, both
combined, for chosen records, and when partitions are taken away.

    moldau dev                                  # in another terminal
    python examples/consumer_groups.py
    kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group tour
"""

from __future__ import annotations

import argparse
import time
import uuid
from typing import Any

from moldau.client import (
    AdminClient,
    Consumer,
    KafkaError,
    NewTopic,
    Producer,
    RebalanceListener,
    TopicPartition,
)

TOPIC = "group-tour"
PARTITIONS = 4
RECORDS = 100

Group = list[Consumer[Any, Any]]


def settle(group: Group) -> None:
    """Poll everybody until each partition belongs to one of them and nobody has two more than another."""
    deadline = time.monotonic() + 60
    while True:
        for consumer in group:
            consumer.poll(0.05)
        held = [consumer.assignment() for consumer in group]
        sizes = [len(each) for each in held]
        if sum(sizes) == len(set().union(*held)) == PARTITIONS and max(sizes) - min(sizes) <= 1:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the group does not settle: {held}")


def show(group: Group) -> None:
    for number, consumer in enumerate(group, 1):
        partitions = sorted(each.partition for each in consumer.assignment())
        print(f"  consumer {number}: {partitions if partitions else 'idle'}")


def share(settings: dict[str, Any]) -> None:
    group: Group = []
    for number in range(1, 6):
        consumer: Consumer[Any, Any] = Consumer(settings)
        consumer.subscribe([TOPIC])
        group.append(consumer)
        settle(group)
        print(f"{number} in the group:")
        show(group)
    group.pop(0).close()
    settle(group)
    print("the first one has left:")
    show(group)
    for consumer in group:
        consumer.close()


class CommitOnRevoke(RebalanceListener):
    """The last occasion to say how far we are with partitions that somebody else will have."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        committed = self._consumer.commit_sync()
        print(f"  on revoke: {_told(committed)}")


def commits(settings: dict[str, Any]) -> None:
    print("committing:")
    settings = {**settings, "max.poll.records": 10}
    with Consumer[Any, Any]({**settings, "enable.auto.commit": True}) as consumer:
        consumer.subscribe([TOPIC])
        print(f"  automatically: {_read(consumer, 20)} records, committed when it closes")
    with Consumer[Any, Any]({**settings, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([TOPIC], listener=CommitOnRevoke(consumer))
        _read(consumer, 10)
        print(f"  synchronously: {_told(consumer.commit_sync())}")
        _read(consumer, 10)
        consumer.commit_async(on_commit=_answered)
        _read(consumer, 10)
        # While running, asynchronous commits are enough: a later one makes up for one that failed.
        consumer.commit_async()
        _read(consumer, 10)
        chosen = {each: at - 1 for each in consumer.assignment() if (at := consumer.position(each))}
        print(f"  chosen offsets: {_told(consumer.commit_sync(chosen))}")
        # At the end, a synchronous one makes sure.
        print(f"  combined: {_told(consumer.commit_sync())}")


def _read(consumer: Consumer[Any, Any], count: int) -> int:
    read, deadline = 0, time.monotonic() + 60
    while read < count:
        read += len(consumer.poll(0.2))
        if time.monotonic() > deadline:
            raise TimeoutError(f"{read} of {count} records came")
    return read


def _answered(offsets: Any, error: KafkaError | None) -> None:
    print(f"  asynchronously: {error if error is not None else _told(offsets)}")


def _told(offsets: dict[TopicPartition, Any]) -> str:
    return ", ".join(f"{each.partition}@{at.offset}" for each, at in sorted(offsets.items())) or "nothing new"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    options = parser.parse_args()
    with AdminClient(options.bootstrap_server) as admin:
        admin.create_topics([NewTopic(TOPIC, partitions=PARTITIONS)])
    with Producer[Any, Any]({"bootstrap.servers": options.bootstrap_server}) as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    settings = {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": f"tour-{uuid.uuid4().hex[:8]}",
        "auto.offset.reset": "earliest",
        # How soon the others hear of a newcomer.
        "heartbeat.interval.ms": 500,
    }
    share({**settings, "enable.auto.commit": False})
    commits(settings)


if __name__ == "__main__":
    main()
