"""The queue of batches for one partition, and their sequence numbers.

A batch gets producer id, epoch and sequence when it is first sent. After that its bytes do not change, so
the broker recognises it when it is sent again.

Invariants:

- One batch of a partition is in flight at a time, so retries do not change the order.
- A sequence is used once; 2147483647 is followed by 0.
- An epoch that is raised for one partition, because the broker has lost the producer state, starts at
  sequence 0.
"""

from __future__ import annotations

from collections import deque

from moldau.base.ids import TopicPartition
from moldau.protocol.batch_header import read_batch_header, set_producer
from moldau.protocol.record_writer import split_batch

_SEQUENCES = 1 << 31
_NONE = -1


class QueuedBatch:
    """A batch with its deadline; `buffer` is writable until it is sent."""

    __slots__ = ("attempts", "buffer", "deadline", "records", "sequence")

    def __init__(self, buffer: bytearray | memoryview, deadline: float) -> None:
        self.buffer = buffer
        self.deadline = deadline
        self.records = read_batch_header(buffer).records_count
        self.sequence = _NONE
        self.attempts = 0

    @property
    def size(self) -> int:
        return len(self.buffer)


class PartitionQueue:
    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[QueuedBatch] = deque()
        self.in_flight: QueuedBatch | None = None
        #: The time of the next attempt.
        self.not_before = 0.0
        #: The offset after the last acknowledged record; -1 without one.
        self.acknowledged_offset = _NONE
        self._sequence = 0
        self._epoch_raised_by = 0

    @property
    def sendable(self) -> bool:
        return bool(self.waiting) and self.in_flight is None

    @property
    def uncertain(self) -> bool:
        """Whether the result of a sent batch is unknown."""
        return self.in_flight is not None or (bool(self.waiting) and self.waiting[0].attempts > 0)

    def take(self, producer_id: int, epoch: int, *, transactional: bool) -> QueuedBatch:
        """The next batch, ready to be sent."""
        batch = self.waiting.popleft()
        self.in_flight = batch
        if batch.sequence == _NONE:
            batch.sequence = self._sequence
            self._sequence = (self._sequence + batch.records) % _SEQUENCES
            raised = epoch + self._epoch_raised_by
            set_producer(batch.buffer, producer_id, raised, batch.sequence, transactional=transactional)
        batch.attempts += 1
        return batch

    def acknowledge(self, base_offset: int) -> QueuedBatch | None:
        """The batch under way is stored."""
        batch, self.in_flight = self.in_flight, None
        if batch is not None and base_offset >= 0:
            self.acknowledged_offset = base_offset + batch.records
        return batch

    def put_back(self, not_before: float) -> None:
        """The batch under way is to be sent again."""
        if self.in_flight is not None:
            self.waiting.appendleft(self.in_flight)
            self.in_flight = None
            self.not_before = not_before

    def reset_sequence(self, *, raise_epoch: bool) -> None:
        """The broker knows nothing of this producer any more: the batch under way gets sequence 0."""
        self._sequence = 0
        self._epoch_raised_by += raise_epoch
        if self.in_flight is not None:
            self.in_flight.sequence = _NONE

    def split(self) -> list[QueuedBatch]:
        """Put the batch under way, which was refused, back in two parts; none if it has a single record."""
        batch, self.in_flight = self.in_flight, None
        if batch is None or batch.records < 2:
            return []
        self._sequence = batch.sequence
        parts = [QueuedBatch(part, batch.deadline) for part in split_batch(batch.buffer)]
        self.waiting.extendleft(reversed(parts))
        return parts

    def drop(self) -> int:
        """Drop queued batches; return their size in bytes."""
        dropped = sum(batch.size for batch in self.waiting)
        self.waiting.clear()
        return dropped
