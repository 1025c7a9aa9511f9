"""Restoring the state of producers at an offset from a snapshot and the batches after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from moldau.protocol.records import CorruptBatch
from moldau.storage.log.segments import SegmentList
from moldau.storage.producers.end_marker import read_end_marker
from moldau.storage.producers.snapshot import ProducerSnapshots
from moldau.storage.producers.state import ProducerState
from moldau.storage.segment.reader import StoredBatch
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
    """Restore the state at offset `end` of a log that starts at `start`; remove snapshots outside of that.

    With `trust_absence`, a log without a snapshot is assumed to have no producers and is not read.
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
            logger.error("%s, found while restoring the state of producers", error)
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
    """Account for a batch of the log; return the transaction that it aborts, if any."""
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
