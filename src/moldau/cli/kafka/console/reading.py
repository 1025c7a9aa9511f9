"""Consume topics with librdkafka: as a member of a group, or with all partitions assigned directly.

Without a group no coordinator is needed: all partitions are assigned directly, and partitions created later
are discovered and read from their start. In a group, patterns are matched here, like in Kafka's Java
consumer, and the client subscribes to the matching names: the regular expressions of librdkafka depend on the
platform.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.base.ids import INTERNAL_TOPICS
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.librdkafka import ReportOnce, describe_error
from moldau.cli.shared.tool import ToolError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

BATCH = 500
POLL_SECONDS = 0.2
#: Interval of the search for new topics and partitions, and the shorter one while there are none.
DISCOVERY_SECONDS = 10.0
FIRST_DISCOVERY_SECONDS = 1.0


class ReadPlan(NamedTuple):
    """The source of records: a topic or a pattern, one partition from an offset, or a member of a group."""

    topic: str | None
    pattern: str | None
    partition: int | None
    offset: int | str
    group: str | None
    properties: dict[str, str]


def read(
    consumer: Consumer, plan: ReadPlan, report: ReportOnce, timeout_ms: int | None
) -> Iterator[Sequence[Message]]:
    """Yield batches of records until none arrives within `timeout_ms`."""
    partitions = (Assignment if plan.group is None else Subscription)(consumer, plan, report)
    timeout = float("inf") if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    last = time.monotonic()
    while True:
        partitions.discover()
        left = last + timeout - time.monotonic()
        records = poll_batch(consumer, max(0.0, min(POLL_SECONDS, left)))
        if records:
            yield records
            last = time.monotonic()
        elif time.monotonic() - last >= timeout:
            return


def poll_batch(consumer: Consumer, timeout: float, limit: int = BATCH) -> list[Message]:
    """Wait for one record and return it with those that are already fetched, `limit` in all."""
    first = consumer.poll(timeout)
    if first is None:
        return []
    more = consumer.consume(limit - 1, timeout=0) if limit > 1 else []
    return [message for message in (first, *more) if not failed(message)]


def failed(message: Any) -> bool:
    """Return whether a message is a transient error instead of a record; raise any other error."""
    error = message.error()
    if error is None:
        return False
    from confluent_kafka import KafkaError

    transient = (KafkaError._PARTITION_EOF, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    if error.code() in transient or error.retriable():
        return True
    raise ToolError(f"Error when reading {message.topic()}-{message.partition()}: {describe_error(error)}")


class StoredOffsets:
    """Stores the offsets of processed records, so that a group commits those and not the fetched ones."""

    def __init__(self, consumer: Consumer, plan: ReadPlan) -> None:
        self._consumer = consumer
        self._stored = plan.group is not None

    def __call__(self, messages: Sequence[Message]) -> None:
        from confluent_kafka import KafkaException

        if not self._stored:
            return
        for message in {(each.topic(), each.partition()): each for each in messages}.values():
            # The partition may have been revoked; then its new owner commits.
            with suppress(KafkaException):
                self._consumer.store_offsets(message=message)


class Subscription:
    """Subscribes to the topics of the plan, including topics created later that match its pattern."""

    def __init__(
        self, consumer: Consumer, plan: ReadPlan, report: ReportOnce, **callbacks: Callable[..., None]
    ) -> None:
        self._consumer = consumer
        self._report = report
        self._callbacks: Any = callbacks
        self._pattern = None if plan.pattern is None else Pattern(plan)
        self._topics: list[str] = []
        self._next_discovery = 0.0
        if plan.topic is not None:
            consumer.subscribe([plan.topic], **self._callbacks)

    def discover(self) -> None:
        now = time.monotonic()
        if self._pattern is None or now < self._next_discovery:
            return
        self._next_discovery = now + (DISCOVERY_SECONDS if self._topics else FIRST_DISCOVERY_SECONDS)
        metadata = _metadata(self._consumer.list_topics, self._report)
        found = sorted(name for name in metadata if self._pattern.allows(name))
        if found and found != self._topics:
            self._topics = found
            self._consumer.subscribe(found, **self._callbacks)


class Pattern:
    """A regular expression for whole topic names; `exclude.internal.topics` decides about internal topics."""

    def __init__(self, plan: ReadPlan) -> None:
        text = plan.pattern or ""
        self._internal = plan.properties.get("exclude.internal.topics", "true").lower() == "false"
        try:
            self._pattern = re.compile(text)
        except re.error as error:
            raise UsageError(f"{text} is an invalid regex: {error}") from error

    def allows(self, topic: str) -> bool:
        if topic in INTERNAL_TOPICS and not self._internal:
            return False
        return self._pattern.fullmatch(topic) is not None


class Assignment:
    """Assigns all partitions of the plan's topics; partitions created later are read from their start."""

    def __init__(self, consumer: Consumer, plan: ReadPlan, report: ReportOnce) -> None:
        self._report = report
        self._consumer = consumer
        self._plan = plan
        self._known: set[tuple[str, int]] = set()
        self._next_discovery = 0.0
        self._pattern = None if plan.pattern is None else Pattern(plan)
        list_topics = consumer.list_topics
        self._list_topics: Any = list_topics if plan.topic is None else partial(list_topics, plan.topic)
        self._first = True

    def discover(self) -> None:
        now = time.monotonic()
        if now < self._next_discovery:
            return
        self._next_discovery = now + (DISCOVERY_SECONDS if self._known else FIRST_DISCOVERY_SECONDS)
        found = [partition for partition in self._partitions() if partition not in self._known]
        if not found:
            return
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

        offset = self._plan.offset if self._first else "earliest"
        start = (
            {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}[offset]
            if isinstance(offset, str)
            else offset
        )
        self._consumer.incremental_assign([TopicPartition(*partition, start) for partition in found])
        self._known.update(found)
        self._first = False

    def _partitions(self) -> list[tuple[str, int]]:
        plan = self._plan
        if plan.partition is not None:
            return [(plan.topic or "", plan.partition)]
        return [
            (name, partition)
            for name, topic in _metadata(self._list_topics, self._report).items()
            if self._pattern is None or self._pattern.allows(name)
            for partition in topic.partitions
        ]


def _metadata(list_topics: Callable[..., Any], report: ReportOnce) -> dict[str, Any]:
    """Return the metadata of topics by name; none while the cluster cannot be reached."""
    from confluent_kafka import KafkaException

    try:
        topics: dict[str, Any] = list_topics(timeout=10).topics
    except KafkaException as error:
        report(error.args[0])
        return {}
    return topics
