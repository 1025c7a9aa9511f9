"""A sink that writes records to topics of another cluster, after transformations; at least once.

Keys and values are bytes or text (`ByteArrayConverter`, `StringConverter`). Timestamps and headers are kept,
partitions if wanted. To copy topics as they are, the connectors of MirrorMaker 2 are much quicker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.producer.producer import Producer
from moldau.client.records import ProducerRecord
from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
)
from moldau.pipelines.connect.connectors.cluster.settings import TARGET_SERVERS
from moldau.pipelines.connect.data.errors import ConnectError, DataError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

TOPIC_FORMAT: Final = "topic.format"
KEEP_PARTITIONS: Final = "partitions.keep"
_TOPIC: Final = "${topic}"
_CLUSTER, _PRODUCER = "target.cluster.", "target.producer."
_CLOSE_S: Final = 5.0
#: How long a commit waits for acknowledgements; offsets of others are committed next time.
_FLUSH_S: Final = 5.0
_DEFAULTS: Final = {
    "acks": "all",
    "enable.idempotence": "true",
    "delivery.timeout.ms": str(2**31 - 1),
    "max.block.ms": "10000",
}


class ClusterSinkConnector(SinkConnector):
    config = (
        ConfigDef()
        .define(
            TARGET_SERVERS, ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Addresses of the other cluster."
        )
        .define(
            TOPIC_FORMAT,
            ConfigType.STRING,
            _TOPIC,
            Importance.MEDIUM,
            "Topic there; ${topic} is the topic of the record.",
            validator=NonEmptyString(),
        )
        .define(
            KEEP_PARTITIONS,
            ConfigType.BOOLEAN,
            False,
            Importance.MEDIUM,
            "Write to the partition of the same number; otherwise the key decides.",
        )
    )

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def task(self) -> SinkTask:
        return ClusterSinkTask()


class ClusterSinkTask(SinkTask):
    def __init__(self) -> None:
        self._producer: Producer[bytes, bytes] | None = None
        self._failure: KafkaError | None = None

    def start(self, context: SinkContext) -> None:
        settings = ClusterSinkConnector.config.parse(context.config)
        self._context = context
        self._format: str = settings[TOPIC_FORMAT]
        self._keep: bool = settings[KEEP_PARTITIONS]
        self._producer = Producer(_client(context.config))

    def put(self, records: Sequence[SinkRecord]) -> None:
        producer = self._producer
        if producer is None:
            raise ConnectError("The task has not been started.")
        self._raise_failure()
        for record in records:
            try:
                produced = self._produced(record)
            except DataError as error:
                self._context.report(record, error)
                continue
            try:
                producer.send_bytes(produced, self._delivered)
            except KafkaError as error:
                self._refused(record, error)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        left = 0 if self._producer is None else self._producer.flush(_FLUSH_S)
        self._raise_failure()
        return {} if left else offsets

    def stop(self) -> None:
        if self._producer is not None:
            self._producer.close(_CLOSE_S)

    def _produced(self, record: SinkRecord) -> ProducerRecord[bytes, bytes]:
        return ProducerRecord(
            self._format.replace(_TOPIC, record.topic),
            _bytes("value", record.value),
            _bytes("key", record.key),
            record.partition if self._keep else None,
            record.timestamp,
            [(each.key, _bytes(f"header {each.key}", each.value)) for each in record.headers],
        )

    def _refused(self, record: SinkRecord, error: KafkaError) -> None:
        """Put records again while the buffer is full; report one that can never be sent."""
        if getattr(error, "retriable", False):
            raise RetriableError(str(error)) from error
        self._context.report(record, error)

    def _delivered(self, error: KafkaError | None) -> None:
        self._failure = self._failure or error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise ConnectError(f"The other cluster refused records: {self._failure}") from self._failure


def _bytes(what: str, value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise DataError(
        f"The {what} is a {type(value).__name__}: use ByteArrayConverter or StringConverter, which keep bytes"
    )


def _client(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the producer: those of the cluster, then its own."""
    found = dict(_DEFAULTS)
    for prefix in (_CLUSTER, _PRODUCER):
        found |= {name.removeprefix(prefix): each for name, each in config.items() if name.startswith(prefix)}
    found.pop("alias", None)
    return found
