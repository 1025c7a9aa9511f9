"""Reading topics with librdkafka: as a member of a group, or every partition by ourselves.

Without a group no coordinator is needed: all partitions are assigned by hand, and those that are added while
we read are noticed and read from their beginning.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.cli.arguments import UsageError
from moldau.cli.console import ReportOnce
from moldau.cli.librdkafka import describe_error
from moldau.cli.tool import ToolError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

BATCH = 500
POLL_SECONDS = 0.2
#: How often we look for topics and partitions that were added; more often while there are none at all.
DISCOVERY_SECONDS = 10.0
FIRST_DISCOVERY_SECONDS = 1.0


class ReadPlan(NamedTuple):
    """What to read: a topic or a pattern, one partition from an offset, or with a group."""

    topic: str | None
    pattern: str | None
    partition: int | None
    offset: int | str
    group: str | None
    properties: dict[str, str]


def read(
    consumer: Consumer, plan: ReadPlan, report: ReportOnce, timeout_ms: int | None
) -> Iterator[Sequence[Message]]:
    """Batches of records; ends when none came for `timeout_ms`."""
    assignment = None if plan.group is not None else Assignment(consumer, plan, report)
    if assignment is None:
        consumer.subscribe([plan.topic if plan.topic is not None else f"^({plan.pattern})$"])
    patience = float("inf") if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    last = time.monotonic()
    while True:
        if assignment is not None:
            assignment.discover()
        left = last + patience - time.monotonic()
        records = _take(consumer, max(0.0, min(POLL_SECONDS, left)))
        if records:
            yield records
            last = time.monotonic()
        elif time.monotonic() - last >= patience:
            return


def _take(consumer: Consumer, timeout: float) -> list[Message]:
    """Wait for one record, then take what else is there."""
    first = consumer.poll(timeout)
    if first is None:
        return []
    return [message for message in (first, *consumer.consume(BATCH, timeout=0)) if not failed(message)]


def failed(message: Any) -> bool:
    error = message.error()
    if error is None:
        return False
    from confluent_kafka import KafkaError

    passing = (KafkaError._PARTITION_EOF, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    if error.code() in passing or error.retriable():
        return True
    raise ToolError(f"Error when reading {message.topic()}-{message.partition()}: {describe_error(error)}")


class Assignment:
    """All partitions of what the plan names; those that appear later are read from their beginning."""

    def __init__(self, consumer: Consumer, plan: ReadPlan, report: ReportOnce) -> None:
        self._report = report
        self._consumer = consumer
        self._plan = plan
        self._known: set[tuple[str, int]] = set()
        self._next_look = 0.0
        self._pattern = None if plan.pattern is None else _compiled(plan.pattern)
        ask = consumer.list_topics
        self._ask_metadata: Any = ask if plan.topic is None else partial(ask, plan.topic)
        self._first = True

    def discover(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + (DISCOVERY_SECONDS if self._known else FIRST_DISCOVERY_SECONDS)
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
        from confluent_kafka import KafkaException

        try:
            metadata = self._ask_metadata(timeout=10)
        except KafkaException as error:
            self._report(error.args[0])
            return []
        return [
            (name, partition)
            for name, topic in metadata.topics.items()
            if self._pattern is None or self._pattern.fullmatch(name)
            for partition in topic.partitions
        ]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern} is an invalid regex: {error}") from error
