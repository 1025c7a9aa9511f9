"""Records, offsets and metadata of producers and consumers, as plain data with Java's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from moldau.base.ids import TopicPartition

K = TypeVar("K")
V = TypeVar("V")

Headers = Sequence[tuple[str, bytes | None]]

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
NO_TIMESTAMP_TYPE = "NoTimestampType"


class ProducerRecord(NamedTuple, Generic[K, V]):
    """A record to send. By default the partitioner chooses the partition, and the timestamp is now."""

    topic: str
    value: V | None = None
    key: K | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = ()


class RecordMetadata(NamedTuple):
    """The position of an acknowledged record. The offset is -1 with acks=0."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """A consumed record with deserialized key and value."""

    topic: str
    partition: int
    offset: int
    key: K
    value: V
    timestamp: int
    timestamp_type: str
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, with metadata of the committer."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first offset at or after a timestamp."""

    offset: int
    timestamp: int


class PartitionInfo(NamedTuple):
    """A partition in the client's metadata; the leader is -1 if there is none."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    in_sync_replicas: list[int]
