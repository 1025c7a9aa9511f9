"""What is read of a partition batch by batch, how, and what can be wrong with it."""

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
    #: Go on behind records that are gone instead of raising `RecordsGone`.
    skip_missing: bool = False
    #: Which topic of that name is meant; None stands for the one that is there when reading begins.
    topic_id: Uuid | None = None
    max_bytes: int = 8 * 1024 * 1024
    max_wait_ms: int = 500
    #: How long to try without progress; None stands for twice `default.api.timeout.ms`.
    patience_ms: int | None = None


class FetchedBatches(NamedTuple):
    """Whole batches as they lie in the log, one after the other.

    `aborted` holds first offset and producer id of the aborted transactions among them, by offset.
    """

    partition: TopicPartition
    #: The offset that was asked for. Records before it do not count: a log can begin inside a batch.
    first_offset: int
    data: memoryview
    aborted: list[tuple[int, int]]


class RecordsGone(KafkaError):
    """Records that were asked for are not there: retention took them, or the log lost its end."""

    def __init__(self, asked: OffsetRange, position: int, log_start: int, log_end: int) -> None:
        self.asked, self.position = asked, position
        self.log_start, self.log_end = log_start, log_end
        first, last = (position, log_start) if position < log_start else (max(log_end, position), asked.end)
        self.missing = (first, min(last, asked.end))
        sentence = (
            f"{asked.partition}: offsets {asked.start} to {asked.end} were to be read, but "
            f"{self.missing[1] - first} of them ({first} to {self.missing[1]}) are gone; "
            f"the partition holds {log_start} to {log_end}"
        )
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, sentence)


class CorruptRecords(KafkaError):
    """A batch that does not hold together."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{partition} at offset {offset}: {reason}")
        self.partition, self.offset = partition, offset


class TopicReplaced(KafkaError):
    """The topic has another id than the one that was to be read."""

    def __init__(self, topic: str) -> None:
        sentence = (
            f"topic {topic} was deleted and made anew while it was read: its offsets mean something else"
        )
        super().__init__(ErrorCode.UNKNOWN_TOPIC_ID, sentence)
