"""The clients the tools produce and consume with. A setting nobody knows is dropped with a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.base.errors import KafkaError
from moldau.cli.shared.tool import ToolError, warn

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer


def open_producer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Producer:
    """A producer that spreads keys over partitions as Kafka's own does."""
    producer: Producer = _create("Producer", {"partitioner": "murmur2_random"}, properties, callbacks)
    return producer


def open_consumer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Consumer:
    """A consumer that, as Kafka's own, shows uncommitted records unless told otherwise."""
    consumer: Consumer = _create("Consumer", {"isolation.level": "read_uncommitted"}, properties, callbacks)
    return consumer


def _create(
    kind: str,
    defaults: dict[str, str],
    properties: Mapping[str, str],
    callbacks: Mapping[str, Callable[..., None]],
) -> Any:
    try:
        import confluent_kafka

        from moldau.client.librdkafka import create, translate
    except ImportError as error:
        raise ToolError(f"librdkafka is needed here: pip install confluent-kafka ({error})") from error
    try:
        return create(
            getattr(confluent_kafka, kind), {**defaults, **translate(properties), **callbacks}, _unknown
        )
    except KafkaError as error:
        raise ToolError(error.message or str(error)) from error


def _unknown(name: str) -> None:
    warn(f"Warning: the configuration '{name}' is not known here and is ignored.")


def describe_error(error: Any) -> str:
    """An error of librdkafka as a sentence."""
    return f"{error.str()} ({error.name()})"
