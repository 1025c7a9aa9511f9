"""The librdkafka clients with which tools produce and consume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.base.errors import KafkaError
from moldau.cli.shared.tool import ToolError, warn

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer


def open_producer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Producer:
    """Open a producer that assigns keys to partitions as Kafka's Java producer does."""
    producer: Producer = _create("Producer", {"partitioner": "murmur2_random"}, properties, callbacks)
    return producer


def open_consumer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Consumer:
    """Open a consumer whose isolation level is read_uncommitted by default, as in Kafka's Java consumer."""
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

        from moldau.client.librdkafka.properties import create, translate
    except ImportError as error:
        raise ToolError(f"This tool needs librdkafka: pip install confluent-kafka ({error})") from error
    try:
        return create(
            getattr(confluent_kafka, kind), {**defaults, **translate(properties), **callbacks}, _warn_unknown
        )
    except KafkaError as error:
        raise ToolError(error.message or str(error)) from error


def _warn_unknown(name: str) -> None:
    warn(f"Warning: the configuration '{name}' is unknown and ignored.")


def describe_error(error: Any) -> str:
    """Return the message and the name of a librdkafka error."""
    return f"{error.str()} ({error.name()})"


class ReportOnce:
    """Print each distinct error of librdkafka once; librdkafka itself retries."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def __call__(self, error: Any) -> None:
        message = describe_error(error)
        if message not in self._reported:
            self._reported.add(message)
            warn(f"Warning: {message}")


def check_reachable(properties: Mapping[str, str], topic: str | None) -> None:
    """Raise an error with a remedy if the cluster cannot be reached; create a missing topic.

    librdkafka would retry without end, also after a refused login.
    """
    from moldau.client.admin.client import AdminClient
    from moldau.client.wire.settings import ClientSettings

    with AdminClient(ClientSettings.from_properties(properties)) as admin:
        if topic is None:
            admin.describe_cluster()
        elif not admin.ensure_topic(topic):
            warn(f"Warning: topic {topic} does not exist yet; waiting for it.")
