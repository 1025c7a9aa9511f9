"""Positions of the application: which records of the last poll it has been given and may commit.

A record counts as handled when the next `poll` is called or, in a loop over the consumer, when the next
record is taken. Records that were polled but not taken are buffered: they are given out by the next poll,
and the position of their partition stays before them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.records import ConsumerRecord, OffsetAndMetadata


class Positions:
    def __init__(self) -> None:
        #: The next offset of each partition with records in the last poll.
        self.delivered: dict[TopicPartition, OffsetAndMetadata] = {}
        self._buffered: deque[ConsumerRecord[Any, Any]] = deque()

    def handled(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset after the last handled record of each partition of the last poll."""
        handled = dict(self.delivered)
        # A copy: while a thread commits, the event loop of an AsyncConsumer takes records.
        for record in reversed(list(self._buffered)):
            handled[record.topic_partition] = OffsetAndMetadata(record.offset)
        return handled

    def buffer(self, records: Iterable[ConsumerRecord[Any, Any]]) -> None:
        self._buffered.extend(records)

    def next_buffered(self) -> ConsumerRecord[Any, Any] | None:
        return self._buffered.popleft() if self._buffered else None

    def take_buffered(self) -> list[ConsumerRecord[Any, Any]]:
        records = list(self._buffered)
        self._buffered.clear()
        return records

    def discard(self, partition: TopicPartition) -> None:
        """Forget the polled records of a partition, handled or not."""
        self.delivered.pop(partition, None)
        self._buffered = deque(each for each in self._buffered if each.topic_partition != partition)
