"""Looking at every record on its way: base classes for interceptors, named as in Java's clients.

Interceptors run in the order given, each on what the one before it returned. One that fails is logged and
passed over: the record goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.records import ConsumerRecord, OffsetAndMetadata, ProducerRecord, RecordMetadata

log = logging.getLogger(__name__)

T = TypeVar("T")


class ProducerInterceptor:
    """Overwrite what you need. `on_acknowledgement` holds up other records while it runs: keep it short."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Called in `send`, before serializing; the record that is returned is sent."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Called when the record is acknowledged, or has failed."""

    def close(self) -> None:
        """Called when the producer is closed."""


class ConsumerInterceptor:
    """Overwrite what you need."""

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Called in `poll`; what is returned goes to the application."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Called when offsets were committed."""

    def close(self) -> None:
        """Called when the consumer is closed."""


def instances(choices: Any) -> list[Any]:
    """Interceptors given as objects or classes, in a list."""
    if isinstance(choices, str):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "interceptor.classes: give a list of objects or classes, not names"
        )
    return [each() if isinstance(each, type) else each for each in choices or ()]


def passed_through(calls: Iterable[Callable[[T], T]], value: T) -> T:
    """What becomes of `value` on its way through every interceptor."""
    for call in calls:
        try:
            value = call(value)
        except Exception:
            log.exception("an interceptor failed; the record goes on without it")
    return value


def told(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        try:
            call()
        except Exception:
            log.exception("an interceptor failed")
