"""Bringing the state of producers up to an offset, from a snapshot and the batches behind it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from moldau.protocol.records import CorruptBatch
from moldau.storage.producers.end_marker import read_end_marker
from moldau.storage.producers.snapshot import ProducerSnapshots
from moldau.storage.producers.state import ProducerState
from moldau.storage.segment.list import SegmentList
from moldau.storage.segment.segment import StoredBatch
from moldau.storage.segment.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)


def restore_producers(
    producers: ProducerState,
    snapshots: ProducerSnapshots,
    segments: SegmentList,
    start: int,
    end: int,
    now_ms: int,
    *,
    trust_absence: bool = False,
) -> None:
    """The state at offset `end` of a log that starts at `start`. Snapshots outside of that are removed.

    With `trust_absence`, a log without any snapshot is taken to have no producers, and is not read for them.
    """
    snapshots.remove_outside(start, end)
    trust_absence = trust_absence and snapshots.latest is None
    snapshot = snapshots.load_latest()
    if snapshot is not None:
        producers.restore(snapshot[1], snapshot[0], now_ms)
    else:
        producers.clear(start)
    if producers.end_offset < end and not trust_absence:
        try:
            for batch in _batches_between(segments, producers.end_offset, end):
                apply_to_producers(producers, batch)
        except CorruptBatch as error:
            logger.error("%s, met while reading the state of producers", error)
    producers.end_offset = end


def _batches_between(segments: SegmentList, start: int, end: int) -> Iterator[StoredBatch]:
    for segment in segments.since(start):
        position = segment.position_of(start) if start > segment.base_offset else 0
        if position is None:
            continue
        for batch in segment.batches(position):
            if batch.header.base_offset >= end:
                return
            yield batch


def apply_to_producers(producers: ProducerState, batch: StoredBatch) -> AbortedTransaction | None:
    """Account for a batch that is in the log; gives back the transaction that it aborts, if it does."""
    header = batch.header
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.update(header, header.base_offset)
        return None
    marker = read_end_marker(batch.data, header)
    completed = producers.update_marker(header, marker, header.base_offset) if marker else None
    if completed is None:
        return None
    stable_offset = producers.stable_offset_after(completed)
    producers.complete(completed)
    if not completed.aborted:
        return None
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, stable_offset
    )
