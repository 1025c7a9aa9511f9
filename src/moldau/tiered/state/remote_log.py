"""The remote log of one partition: its segments by leader epoch, replayed from `__remote_log_metadata`.

A segment is readable from COPY_SEGMENT_FINISHED until DELETE_SEGMENT_STARTED. After a change of leader,
segments may overlap: the new leader copies what it does not know to be copied. Within a leader epoch, a
segment that another one covers completely is unreferenced, but stays listed until retention deletes it.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.base.json_log import event
from moldau.protocol.schema import Message
from moldau.protocol.stored.remote_log import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
)
from moldau.tiered.state.segments import (
    RemoteSegment,
    SegmentState,
    announced_segment,
    may_follow,
    updated_segment,
)

logger = logging.getLogger(__name__)

NO_OFFSET = -1


class _Readable(NamedTuple):
    """A readable segment with its range of offsets of one leader epoch."""

    start: int
    end: int
    segment_id: Uuid


class _Epoch:
    """The segments with records of one leader epoch.

    None of the `readable` ones covers another: they are sorted by their starts, and then also by their ends.
    """

    __slots__ = ("highest", "readable", "unreferenced")

    def __init__(self) -> None:
        self.readable: list[_Readable] = []
        self.unreferenced: dict[Uuid, None] = {}
        self.highest = NO_OFFSET

    def finished(self, start: int, end: int, segment_id: Uuid) -> None:
        self.highest = max(self.highest, end)
        before = self._before(start)
        if before is not None and end <= before.end and (start, end) != (before.start, before.end):
            return
        first = last = bisect_left(self.readable, start, key=_start)
        while last < len(self.readable) and self.readable[last].end <= end:
            last += 1
        for covered in self.readable[first:last]:
            self.unreferenced[covered.segment_id] = None
        self.readable[first:last] = [_Readable(start, end, segment_id)]
        self.unreferenced.pop(segment_id, None)

    def deletion_started(self, start: int, segment_id: Uuid) -> None:
        found = self._before(start)
        if found is not None and found.segment_id == segment_id:
            self.readable.remove(found)
        self.unreferenced[segment_id] = None

    def at(self, offset: int) -> Uuid | None:
        found = self._before(offset)
        return found.segment_id if found is not None and offset <= found.end else None

    def _before(self, offset: int) -> _Readable | None:
        """Return the last segment that starts at or before an offset."""
        number = bisect_right(self.readable, offset, key=_start)
        return self.readable[number - 1] if number else None


def _start(readable: _Readable) -> int:
    return readable.start


class RemoteLog:
    """`replay` is the only way in which it changes.

    No segment with aborted transactions ends after `last_aborted_offset`.
    """

    __slots__ = ("_epochs", "_segments", "last_aborted_offset")

    def __init__(self) -> None:
        self.last_aborted_offset = NO_OFFSET
        self._segments: dict[Uuid, RemoteSegment] = {}
        self._epochs: dict[int, _Epoch] = {}

    def replay(self, record: Message) -> None:
        """Apply a record; one that does not fit the segment's state is ignored."""
        if isinstance(record, RemoteLogSegmentMetadataRecord):
            segment = announced_segment(record)
            known = self._segments.get(segment.id)
            if known is None and segment.state is SegmentState.COPY_SEGMENT_STARTED:
                self._start(segment)
        elif isinstance(record, RemoteLogSegmentMetadataUpdateRecord):
            known = self._segments.get(record.remote_log_segment_id.id)
            if known is None:
                return
            changed = updated_segment(known, record)
            if changed.state is known.state or not may_follow(known.state, changed.state):
                if changed.state is not known.state:
                    logger.info(
                        "%s is %s: ignoring %s",
                        known,
                        known.state.name,
                        changed.state.name,
                        extra=event("tiered.metadata_ignored"),
                    )
                return
            self._change(changed)

    def _start(self, segment: RemoteSegment) -> None:
        self._segments[segment.id] = segment
        for entry in segment.epochs:
            self._epochs.setdefault(entry.epoch, _Epoch()).unreferenced[segment.id] = None

    def _change(self, segment: RemoteSegment) -> None:
        for epoch, start in segment.epochs:
            state = self._epochs[epoch]
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
                state.finished(start, segment.end_of_epoch(epoch), segment.id)
            elif segment.state is SegmentState.DELETE_SEGMENT_STARTED:
                state.deletion_started(start, segment.id)
            else:
                state.unreferenced.pop(segment.id, None)
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and not segment.txn_index_empty:
            self.last_aborted_offset = max(self.last_aborted_offset, segment.end_offset)
        if segment.state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self._segments[segment.id]
        else:
            self._segments[segment.id] = segment

    # Reading.

    def __len__(self) -> int:
        return len(self._segments)

    def get(self, segment_id: Uuid) -> RemoteSegment | None:
        return self._segments.get(segment_id)

    @property
    def segments(self) -> list[RemoteSegment]:
        """All segments, in the order of their offsets."""
        return sorted(self._segments.values(), key=lambda segment: (segment.start_offset, segment.id))

    @property
    def epochs(self) -> list[int]:
        """The leader epochs of the segments that exist."""
        return sorted({entry.epoch for segment in self._segments.values() for entry in segment.epochs})

    def of_epoch(self, epoch: int) -> list[RemoteSegment]:
        """Return the segments with records of a leader epoch, also unreferenced ones, by offset."""
        state = self._epochs.get(epoch)
        if state is None:
            return []
        return self._by_offset((*(each.segment_id for each in state.readable), *state.unreferenced))

    def _by_offset(self, ids: Iterable[Uuid]) -> list[RemoteSegment]:
        found = [self._segments[each] for each in dict.fromkeys(ids)]
        return sorted(found, key=lambda segment: (segment.start_offset, segment.id))

    def lookup(self, epoch: int, offset: int) -> RemoteSegment | None:
        """Return the readable segment that has `offset` as a record of a leader epoch."""
        state = self._epochs.get(epoch)
        segment_id = None if state is None else state.at(offset)
        return None if segment_id is None else self._segments[segment_id]

    def highest_offset(self, epoch: int) -> int:
        """Return the last offset of a leader epoch that was ever copied; -1 if none was.

        The segment may have been deleted since: only `lookup` tells what the remote tier has.
        """
        state = self._epochs.get(epoch)
        return NO_OFFSET if state is None else state.highest

    def sizes(self) -> tuple[int, int]:
        """Return the number of segments, and the bytes of those that are copied and not yet deleted."""
        kept = (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED)
        stored = sum(segment.size for segment in self._segments.values() if segment.state in kept)
        return len(self._segments), stored
