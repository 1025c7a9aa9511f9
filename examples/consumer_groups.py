"""One to five consumers share four partitions; then offsets are committed in every possible way.

Each step adds a consumer to the group and prints the assignments: the fifth consumer has no partition until
another one leaves. Then offsets are committed automatically, synchronously, asynchronously, both combined,
for chosen records, and when partitions are revoked.

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
    """Poll all consumers until every partition is assigned and their numbers differ by at most one."""
    deadline = time.monotonic() + 60
    while True:
        for consumer in group:
            consumer.poll(0.05)
        held = [consumer.assignment() for consumer in group]
        sizes = [len(each) for each in held]
        if sum(sizes) == len(set().union(*held)) == PARTITIONS and max(sizes) - min(sizes) <= 1:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the group is not balanced after 60 seconds: {held}")


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
    """Commits before partitions are revoked, so that their next owner continues at the right offset."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        committed = self._consumer.commit_sync()
        print(f"  on revoke: {_format(committed)}")


def commits(settings: dict[str, Any]) -> None:
    print("committing:")
    settings = {**settings, "max.poll.records": 10}
    with Consumer[Any, Any]({**settings, "enable.auto.commit": True}) as consumer:
        consumer.subscribe([TOPIC])
        print(f"  automatically: {_read(consumer, 20)} records, committed when it closes")
    with Consumer[Any, Any]({**settings, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([TOPIC], listener=CommitOnRevoke(consumer))
        _read(consumer, 10)
        print(f"  synchronously: {_format(consumer.commit_sync())}")
        _read(consumer, 10)
        consumer.commit_async(on_commit=_answered)
        _read(consumer, 10)
        # Between polls an asynchronous commit is enough: the next one includes a failed one.
        consumer.commit_async()
        _read(consumer, 10)
        chosen = {each: at - 1 for each in consumer.assignment() if (at := consumer.position(each))}
        print(f"  chosen offsets: {_format(consumer.commit_sync(chosen))}")
        # At the end a synchronous commit ensures that the offsets are stored.
        print(f"  combined: {_format(consumer.commit_sync())}")


def _read(consumer: Consumer[Any, Any], count: int) -> int:
    read, deadline = 0, time.monotonic() + 60
    while read < count:
        read += len(consumer.poll(0.2))
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {read} of {count} records arrived within 60 seconds")
    return read


def _answered(offsets: Any, error: KafkaError | None) -> None:
    print(f"  asynchronously: {error if error is not None else _format(offsets)}")


def _format(offsets: dict[TopicPartition, Any]) -> str:
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
        # Members learn of a rebalance with their next heartbeat.
        "heartbeat.interval.ms": 500,
    }
    share({**settings, "enable.auto.commit": False})
    commits(settings)


if __name__ == "__main__":
    main()
