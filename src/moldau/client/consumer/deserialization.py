"""Turn librdkafka's messages into records, with the consumer's deserializers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import confluent_kafka

from moldau.base.ids import TopicPartition
from moldau.client.librdkafka.headers import headers_of
from moldau.client.records import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, ConsumerRecord
from moldau.client.serdes import Deserializer, SerializationError, deserializer

_TIMESTAMP_TYPES = {
    confluent_kafka.TIMESTAMP_CREATE_TIME: CREATE_TIME,
    confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: LOG_APPEND_TIME,
}


class RecordDeserializationError(SerializationError):
    """A record that cannot be deserialized. The consumer stays before it: `seek` past it to continue."""

    def __init__(self, partition: TopicPartition, offset: int, reason: Exception) -> None:
        text = reason.message if isinstance(reason, SerializationError) else repr(reason)
        super().__init__(f"{partition} at offset {offset}: {text}")
        self.topic_partition = partition
        self.offset = offset


class RecordDeserializer:
    """The deserializers of key and value; `config` has them by Kafka's names unless they are given."""

    def __init__(
        self,
        config: Mapping[str, Any],
        key: Deserializer[Any] | str | None,
        value: Deserializer[Any] | str | None,
    ) -> None:
        self._key = deserializer(key or config.get("key.deserializer"), config, key=True)
        self._value = deserializer(value or config.get("value.deserializer"), config)

    def record(self, message: Any) -> ConsumerRecord[Any, Any]:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        headers = headers_of(message)
        try:
            key = self._key.deserialize(topic, message.key(), headers)
            value = self._value.deserialize(topic, message.value(), headers)
        except Exception as error:  # deserializers of the application may raise anything
            raise RecordDeserializationError(TopicPartition(topic, partition), offset, error) from error
        kind, timestamp = message.timestamp()
        timestamp_type = _TIMESTAMP_TYPES.get(kind, NO_TIMESTAMP_TYPE)
        return ConsumerRecord(
            topic, partition, offset, key, value, timestamp, timestamp_type, headers, message.leader_epoch()
        )
