"""The partitions that a source reads: topics by name, topics by pattern, or assigned partitions.

As in Spark's Kafka connector, a pattern may match any part of the name, and it never matches internal topics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.base.ids import TopicPartition
from moldau.pipelines.options import InvalidOption

STRATEGIES = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics, a pattern, or assigned partitions with their topics."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] = frozenset()

    @property
    def names(self) -> list[str] | None:
        """The topics of a Metadata request; None for all."""
        return None if self.pattern is not None else sorted(self.topics)

    def matches(self, partition: TopicPartition) -> bool:
        if self.assigned:
            return partition in self.assigned
        return self.matches_topic(partition.topic)

    def matches_topic(self, topic: str, *, internal: bool = False) -> bool:
        if self.pattern is not None:
            return not internal and re.search(self.pattern, topic) is not None
        return topic in self.topics

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics that match {self.pattern!r}"
        return ", ".join(sorted(map(str, self.assigned)) if self.assigned else sorted(self.topics))


def read_subscription(options: Mapping[str, str]) -> Subscription:
    """Parse the options, whose names are in lower case."""
    given = [name for name in STRATEGIES if name.lower() in options]
    if not given:
        raise InvalidOption(f"One of the options {', '.join(STRATEGIES)} must be set.")
    if len(given) > 1:
        raise InvalidOption(f"Only one of the options {', '.join(STRATEGIES)} can be set, not {given}.")
    value = options[given[0].lower()]
    if given[0] == "subscribe":
        return _by_name(value)
    return _by_pattern(value) if given[0] == "subscribePattern" else _by_partition(value)


def _by_name(value: str) -> Subscription:
    topics = frozenset(name.strip() for name in value.split(",")) - {""}
    if not topics:
        raise InvalidOption(f"No topics to subscribe to: the option 'subscribe' is {value!r}.")
    return Subscription(topics=topics)


def _by_pattern(value: str) -> Subscription:
    pattern = value.strip()
    if not pattern:
        raise InvalidOption(f"The pattern is empty: the option 'subscribePattern' is {value!r}.")
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidOption(
            f"The option 'subscribePattern' is not a valid pattern: {pattern!r}: {error}"
        ) from None
    return Subscription(pattern=pattern)


def _by_partition(value: str) -> Subscription:
    partitions = frozenset(_partitions(value))
    if not partitions:
        raise InvalidOption(f"No partitions to read: the option 'assign' is {value!r}.")
    return Subscription(topics=frozenset(p.topic for p in partitions), assigned=partitions)


def _partitions(value: str) -> Iterable[TopicPartition]:
    try:
        read = json.loads(value)
        return [
            TopicPartition(topic, number)
            for topic, numbers in read.items()
            for number in numbers
            if _is_partition(number)
        ]
    except (ValueError, AttributeError, TypeError):
        raise InvalidOption(
            f"The option 'assign' must name partitions, for example "
            f'{{"topicA":[0,1],"topicB":[0,1]}}, not {value!r}.'
        ) from None


def _is_partition(number: object) -> bool:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(number)
    return True
