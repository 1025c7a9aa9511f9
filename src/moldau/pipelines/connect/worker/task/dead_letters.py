"""The dead-letter topic of a sink connector (`errors.deadletterqueue.*`): records as they were consumed.

With `errors.deadletterqueue.context.headers.enable` each record gets headers that say where it came from, and
why it failed. Offsets are committed only after dead letters are acknowledged.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from moldau.client.admin.topic_types import NewTopic
from moldau.client.producer.producer import Producer
from moldau.client.records import ConsumerRecord, RecordMetadata
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.worker.retries import may_pass
from moldau.pipelines.connect.worker.task.errors import Failure
from moldau.pipelines.connect.worker.task.spec import TaskSpec
from moldau.pipelines.connect.worker.task.topics import create_missing

PREFIX: Final = "errors.deadletterqueue."
_HEADERS: Final = "__connect.errors."
_MAX_TRACE: Final = 64 * 1024
_TIMEOUT_S: Final = 60.0


class DeadLetters:
    def __init__(
        self, spec: TaskSpec, topic: str, producer: Producer[bytes, bytes], *, context_headers: bool
    ) -> None:
        self._spec = spec
        self._topic = topic
        self._producer = producer
        self._context_headers = context_headers
        self._unacknowledged: list[Future[RecordMetadata]] = []

    def report(self, failure: Failure) -> None:
        record = failure.original
        if not isinstance(record, ConsumerRecord):
            return
        headers = list(record.headers)
        if self._context_headers:
            headers += context_headers(self._spec, record, failure)
        timestamp = record.timestamp if record.timestamp >= 0 else None
        self._unacknowledged.append(
            self._producer.send(self._topic, record.value, record.key, timestamp=timestamp, headers=headers)
        )

    def flush(self) -> None:
        """Wait until all dead letters are stored; `KafkaError` if one is not."""
        waiting, self._unacknowledged = self._unacknowledged, []
        for each in waiting:
            each.result(_TIMEOUT_S)

    def close(self) -> None:
        self._producer.close(_TIMEOUT_S)


def context_headers(
    spec: TaskSpec, record: ConsumerRecord[Any, Any], failure: Failure
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a dead letter, in Kafka Connect's order, without secrets of the settings."""
    error = failure.error
    java_class = getattr(error, "java_class", f"{type(error).__module__}.{type(error).__qualname__}")
    trace = "".join(traceback.format_exception(error))
    fields = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "connector.name": spec.connector,
        "task.id": str(spec.task),
        "stage": failure.stage.value,
        "class.name": failure.executing_class,
        "exception.class.name": java_class,
        "exception.message": spec.hide(str(error)),
        "exception.stacktrace": spec.hide(trace)[-_MAX_TRACE:],
    }
    return [(f"{_HEADERS}{name}", value.encode("utf-8", "replace")) for name, value in fields.items()]


def create_topic(client: Mapping[str, str], topic: str, replication_factor: int) -> None:
    """Create the dead-letter topic if it is missing; `ConnectError` if that is not possible."""
    error = create_missing(client, NewTopic(topic, partitions=1, replication_factor=replication_factor))
    if error is not None:
        message = f"Could not initialize dead letter queue with topic={topic}"
        raise (RetriableError if may_pass(error) else ConnectError)(message) from error
