"""Base classes for interceptors, with the method names of Java's clients.

Interceptors run in the given order, each on the result of the one before it. If one raises, the exception is
logged and the record continues as it was before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.records import ConsumerRecord, OffsetAndMetadata, ProducerRecord, RecordMetadata

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ProducerInterceptor:
    """Override what you need. `on_acknowledgement` delays other records while it runs: keep it short."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Called in `send`, before serialization; the returned record is sent."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Called when the record is acknowledged or has failed."""

    def close(self) -> None:
        """Called when the producer is closed."""


class ConsumerInterceptor:
    """Override what you need."""

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """Called in `poll`; the application receives the returned records."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Called after offsets were committed."""

    def close(self) -> None:
        """Called when the consumer is closed."""


def instances(choices: Any) -> list[Any]:
    """Return interceptors that are given as objects or classes, as a list of objects."""
    if isinstance(choices, str):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "interceptor.classes: give a list of objects or classes, not names"
        )
    return [each() if isinstance(each, type) else each for each in choices or ()]


def apply_all(calls: Iterable[Callable[[T], T]], value: T) -> T:
    """Apply the calls of all interceptors to `value`, one after the other."""
    for call in calls:
        try:
            value = call(value)
        except Exception:
            logger.exception("an interceptor failed and is skipped for this record")
    return value


def call_all(calls: Iterable[Callable[[], None]]) -> None:
    """Make all calls; log the exceptions of those that fail."""
    for call in calls:
        try:
            call()
        except Exception:
            logger.exception("an interceptor failed")
