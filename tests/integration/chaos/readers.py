"""Consumers that read under faults and record what they receive."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.integration.chaos.access import REQUEST_TIMEOUT_MS, Access
from tests.integration.chaos.history import History

Log = dict[int, list[tuple[int, bytes]]]


class Reader(threading.Thread):
    """Read every partition from its beginning and record the values."""

    def __init__(self, name: str, access: Access, topic: str, partitions: int, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.access = access
        self.topic = topic
        self.partitions = partitions
        self.history = history
        self.stopping = threading.Event()

    def finish(self, timeout: float) -> None:
        self.stopping.set()
        self.join(timeout)
        if self.is_alive():
            self.history.violation(f"{self.name} did not end within {timeout:g} s")

    def run(self) -> None:
        consumer = Consumer(settings(self.access, f"none-{self.name}", "read_committed"))
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(self.partitions)])
        try:
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.1):
                    if message.error() is None:
                        self.history.see(
                            self.name, message.partition() or 0, message.offset() or 0, message.value() or b""
                        )
        finally:
            consumer.close()


class Member(Reader):
    """A member of a group that commits its offsets; committed offsets never decrease."""

    group = "chaos-group"
    protocol = "classic"

    def run(self) -> None:
        consumer = Consumer(settings(self.access, self.group, "read_uncommitted", self.protocol))
        consumer.subscribe([self.topic], on_assign=self._assigned)
        try:
            while not self.stopping.is_set():
                messages = consumer.consume(200, 0.2)
                good = [message for message in messages if message.error() is None]
                if good:
                    self._commit(consumer, good)
                    time.sleep(0.05)
        finally:
            consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        least = {each.partition: self.history.least_commit(self.group, each.partition) for each in partitions}
        try:
            found = consumer.committed(partitions, timeout=10)
        except KafkaException as error:
            self.history.note(f"{self.name}: committed offsets unknown: {error.args[0]}")
            return
        check_commits(self.history, f"{self.name} was assigned", self.group, found, least)

    def _commit(self, consumer: Consumer, messages: list[confluent_kafka.Message]) -> None:
        ends: dict[int, int] = {}
        for message in messages:
            ends[message.partition() or 0] = (message.offset() or 0) + 1
        offsets = [TopicPartition(self.topic, partition, end) for partition, end in ends.items()]
        try:
            confirmed = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self.history.note(f"{self.name}: not committed: {error.args[0]}")
            return
        for each in confirmed or []:
            if each.error is None:
                self.history.committed(self.group, each.partition, each.offset)


class NewMember(Member):
    """The same with the consumer protocol (KIP-848)."""

    group = "chaos-new-group"
    protocol = "consumer"


def check_commits(
    history: History, when: str, group: str, found: list[TopicPartition], least: Mapping[int, int]
) -> None:
    for each in found:
        # A group that has committed nothing yet has a negative offset.
        if each.error is None and max(each.offset, 0) < least[each.partition]:
            history.violation(
                f"{when}: {group} has {each.offset} for partition {each.partition}, although "
                f"{least[each.partition]} was committed"
            )


def final_commits(access: Access, group: str, topic: str, partitions: int, history: History) -> None:
    """Check that the final committed offsets are not below the acknowledged ones."""
    consumer = Consumer(settings(access, group, "read_committed"))
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        least = {number: history.least_commit(group, number) for number in range(partitions)}
        found = consumer.committed(asked, timeout=30)
        check_commits(history, "in the end", group, found, least)
    finally:
        consumer.close()


def read_log(access: Access, topic: str, partitions: int, isolation: str, timeout: float) -> Log:
    """Return offset and value of all records by partition. An abandoned transaction is
    waited for: the coordinator aborts it after its timeout."""
    consumer = Consumer({**settings(access, "none-checker", isolation), "enable.partition.eof": True})
    log: Log = {number: [] for number in range(partitions)}
    unfinished = set(range(partitions))
    ends = _ends(access, topic, partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    deadline = time.monotonic() + timeout
    try:
        while unfinished:
            assert time.monotonic() < deadline, (
                f"partitions {sorted(unfinished)} cannot be read to their ends"
            )
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    log[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    number = message.partition() or 0
                    if (message.offset() or 0) >= ends[number]:
                        unfinished.discard(number)
    finally:
        consumer.close()
    return log


def _ends(access: Access, topic: str, partitions: int) -> dict[int, int]:
    """Return the log end offsets, open transactions included."""
    consumer = Consumer(settings(access, "none-checker", "read_uncommitted"))
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=20)[1]
            for number in range(partitions)
        }
    finally:
        consumer.close()


def settings(access: Access, group: str, isolation: str, protocol: str = "classic") -> dict[str, Any]:
    timeout = {"session.timeout.ms": 6000} if protocol == "classic" else {}
    return {
        **timeout,
        "group.protocol": protocol,
        **access.librdkafka(),
        "group.id": group,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        "socket.timeout.ms": REQUEST_TIMEOUT_MS,
    }
