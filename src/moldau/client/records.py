"""What producers send and get back, what consumers receive and commit: plain data, with Java's names."""

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
    """A record to be sent. Without a partition the partitioner chooses, without a timestamp it is now."""

    topic: str
    value: V | None = None
    key: K | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = ()


class RecordMetadata(NamedTuple):
    """Where an acknowledged record is. The offset is -1 when the broker was not asked (acks=0)."""

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
    """A record as it was stored, its key and value deserialized."""

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
    """The next offset a group wants to read, with a note of its own."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int


class PartitionInfo(NamedTuple):
    """A partition as producers and consumers see it; the leader is -1 while there is none."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    in_sync_replicas: list[int]
