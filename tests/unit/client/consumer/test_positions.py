"""Positions of the application between polls."""

from __future__ import annotations

from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.consumer.positions import Positions
from moldau.client.records import OffsetAndMetadata

ORDERS = TopicPartition("orders", 0)


class TakingRecord:
    """A record at which the event loop takes the next one, while a thread looks at the positions."""

    def __init__(self, positions: Positions, offset: int) -> None:
        self._positions = positions
        self.offset = offset

    @property
    def topic_partition(self) -> TopicPartition:
        self._positions.next_buffered()
        return ORDERS


def test_records_are_taken_while_another_thread_commits() -> None:
    positions = Positions()
    records: list[Any] = [TakingRecord(positions, offset) for offset in range(3)]
    positions.delivered[ORDERS] = OffsetAndMetadata(3)
    positions.buffer(records)
    assert positions.handled() == {ORDERS: OffsetAndMetadata(0)}
