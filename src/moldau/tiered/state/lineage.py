"""Which remote segments belong to the history of a replica's log, by its leader epochs.

The remote tier may have segments of leaders whose records were lost in an unclean election, and copies of the
same offsets by several leaders. A replica accepts a segment only if the segment's leader epochs, with their
first offsets, are those of its own log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from moldau.storage.log.leader_epochs import EpochEntry
from moldau.tiered.state.remote_log import NO_OFFSET, RemoteLog
from moldau.tiered.state.segments import RemoteSegment, SegmentState


def with_records(epochs: Sequence[EpochEntry]) -> list[EpochEntry]:
    """Return the epochs without those that have no records: the next one begins at the same offset."""
    return [
        entry
        for number, entry in enumerate(epochs)
        if number + 1 == len(epochs) or epochs[number + 1].start_offset != entry.start_offset
    ]


def epochs_between(epochs: Sequence[EpochEntry], start: int, end: int) -> list[EpochEntry]:
    """Return the epochs in effect in `[start, end)`; the first one begins at `start`."""
    found: list[EpochEntry] = []
    for entry in epochs:
        if entry.start_offset >= end:
            break
        if entry.start_offset <= start:
            found = [EpochEntry(entry.epoch, start)]
        else:
            found.append(entry)
    return found


def is_in_lineage(segment: RemoteSegment, log_end_offset: int, lineage: Sequence[EpochEntry]) -> bool:
    """Return whether the records of a segment are those of the log, given its epochs with records."""
    own = with_records(segment.epochs)
    if not own or not lineage or segment.end_offset >= log_end_offset:
        return False
    starts = dict(lineage)
    later = {entry.epoch: following for entry, following in pairwise(lineage)}
    if not lineage[0].epoch <= own[-1].epoch <= lineage[-1].epoch:
        return False
    # Epochs before the first one of the log were removed with a raised log start offset.
    known = [entry for entry in own if entry.epoch >= lineage[0].epoch]
    for number, (epoch, offset) in enumerate(known):
        if epoch not in starts:
            return False
        if number == 0 and epoch != lineage[0].epoch and offset < starts[epoch]:
            return False
        following = later.get(epoch)
        if number + 1 == len(known):
            if following is not None and segment.end_offset >= following.start_offset:
                return False
        elif following != known[number + 1]:
            return False
    return True


def readable_end(
    segment: RemoteSegment, epoch: int, epochs: Sequence[EpochEntry], log_end_offset: int
) -> int:
    """Return the offset up to which a segment has the log's own records, from a leader epoch on.

    A segment of a leader that lost an unclean election may continue with records that the log does not have.
    """
    if is_in_lineage(segment, log_end_offset, with_records(epochs)):
        return segment.end_offset + 1
    later = [entry.start_offset for entry in epochs if entry.epoch > epoch]
    return min([segment.end_of_epoch(epoch) + 1, log_end_offset, *later])


def copied_until(remote: RemoteLog, epochs: Sequence[EpochEntry], start: int, end: int) -> int:
    """Return the first offset in `[start, end)` of the log that the remote tier does not have; else `end`.

    An offset and a leader epoch name one record, whichever leader has copied it (Raft §5.3).
    """
    offset, number = start, bisect_right(epochs, start, key=lambda entry: entry.start_offset) - 1
    if number < 0:
        # A log that begins with a gap: there are no records before its first epoch.
        if not epochs or epochs[0].start_offset >= end:
            return start
        offset, number = epochs[0].start_offset, 0
    while offset < end:
        epoch = epochs[number].epoch
        following = epochs[number + 1].start_offset if number + 1 < len(epochs) else end
        if offset < following:
            segment = remote.lookup(epoch, offset)
            if segment is None:
                return offset
            offset = min(segment.end_of_epoch(epoch) + 1, following, end)
        if offset == following:
            number += 1
    return end


def highest_ever_copied(remote: RemoteLog, epochs: Sequence[EpochEntry], log_end_offset: int) -> int:
    """Return the last offset of the log that was ever copied; -1 if there is none."""
    end = log_end_offset
    for entry in reversed(epochs):
        highest = remote.highest_offset(entry.epoch)
        if highest != NO_OFFSET:
            return min(highest, end - 1)
        end = entry.start_offset
    return NO_OFFSET


def remote_log_start(
    remote: RemoteLog, epochs: Sequence[EpochEntry], log_start_offset: int, local_log_start_offset: int
) -> int:
    """Return where the log starts at the earliest: with the first offset that one of the tiers has."""
    for entry in epochs:
        for segment in remote.of_epoch(entry.epoch):
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
                return max(min(segment.start_offset, local_log_start_offset), log_start_offset)
    return local_log_start_offset
