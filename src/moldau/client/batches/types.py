"""Types of the batch reader and the batch writer: ranges, options, fetched batches, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid


class OffsetRange(NamedTuple):
    """Offsets of a partition from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ReadOptions:
    read_committed: bool = True
    #: Continue after missing records instead of raising `RecordsGone`.
    skip_missing: bool = False
    #: The expected topic id; None for the topic that exists when reading begins.
    topic_id: Uuid | None = None
    max_bytes: int = 8 * 1024 * 1024
    max_wait_ms: int = 500
    #: Maximum time of retries without progress; None for twice `default.api.timeout.ms`.
    patience_ms: int | None = None


class FetchedBatches(NamedTuple):
    """Consecutive whole batches, as stored in the log.

    `aborted` has first offset and producer id of the aborted transactions among them, ordered by offset.
    """

    partition: TopicPartition
    #: The fetch offset. Skip records before it: a log can start inside a batch.
    first_offset: int
    data: memoryview
    aborted: list[tuple[int, int]]


class RecordsGone(KafkaError):
    """Requested records do not exist any more: deleted by retention, or lost with the end of the log."""

    def __init__(self, asked: OffsetRange, position: int, log_start: int, log_end: int) -> None:
        self.asked, self.position = asked, position
        self.log_start, self.log_end = log_start, log_end
        first, last = (position, log_start) if position < log_start else (max(log_end, position), asked.end)
        self.missing = (first, min(last, asked.end))
        sentence = (
            f"{asked.partition}: offsets {asked.start} to {asked.end} were requested, but "
            f"{self.missing[1] - first} of them ({first} to {self.missing[1]}) are gone; "
            f"the partition contains {log_start} to {log_end}"
        )
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, sentence)


class RecordsRefused(KafkaError):
    """The broker refused a batch of a partition."""

    def __init__(self, partition: TopicPartition, reason: KafkaError) -> None:
        super().__init__(reason.code, reason.message)
        self.partition = partition


class CorruptRecords(KafkaError):
    """A corrupt batch."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{partition} at offset {offset}: {reason}")
        self.partition, self.offset = partition, offset


class TopicReplaced(KafkaError):
    """The topic id has changed."""

    def __init__(self, topic: str) -> None:
        sentence = (
            f"topic {topic} was deleted and created again while it was read: its offsets are not comparable"
        )
        super().__init__(ErrorCode.UNKNOWN_TOPIC_ID, sentence)
