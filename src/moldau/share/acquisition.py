"""Acquiring records: which of the fetched records a member gets.

Released records are delivered again before new ones. New records are acquired in whole batches of the log,
joined or split by `batch_size`; in strict mode (KIP-1206, `record_limit`) never more than `max_records`.
Records with many failed deliveries are acquired in ever smaller groups and finally alone, so that one bad
record does not affect others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from moldau.share.in_flight import InFlightBatch, InFlightState
from moldau.share.partition_state import SharePartitionState
from moldau.share.record_state import RecordState

#: The lowest delivery count from which records are acquired in smaller groups.
_MIN_THROTTLE_COUNT = 2


class FetchedBatch(NamedTuple):
    """The header of a record batch."""

    base: int
    last: int
    size: int
    producer_id: int = -1
    transactional: bool = False
    #: Whether it is an ABORT marker.
    aborts: bool = False


class Acquired(NamedTuple):
    """Records acquired by a member, with their delivery count."""

    first: int
    last: int
    delivery_count: int


class AcquireRequest(NamedTuple):
    """The limits of one fetch."""

    member_id: str
    max_records: int
    batch_size: int
    #: Whether `max_records` is a hard limit, even if that splits a batch.
    strict: bool = False


class FetchedRecords(NamedTuple):
    """The batches read from the log at the next fetch offset."""

    offset: int
    batches: Sequence[FetchedBatch]
    #: Producer id and first offset of aborted transactions.
    aborted: Sequence[tuple[int, int]] = ()


def acquire(
    partition: SharePartitionState, request: AcquireRequest, fetched: FetchedRecords
) -> list[Acquired]:
    if request.max_records <= 0 or not fetched.batches or fetched.batches[-1].last < partition.start_offset:
        return []
    acquired = _Acquisition(partition, request, fetched).run()
    if not acquired or not fetched.aborted:
        return acquired
    dropped = aborted_batches(fetched.batches, fetched.aborted)
    for batch in dropped:
        floor = partition.in_flight.floor(batch.base)
        among = partition.in_flight.between(batch.base if floor is None else floor.first, batch.last)
        partition.archive(batch.base, batch.last + 1, among, RecordState.ACQUIRED, count=True)
    kept = [Acquired(first, last, count) for first, last, count in without(acquired, dropped)]
    if dropped:
        partition.advance()
    return kept


class _Acquisition:
    def __init__(
        self, partition: SharePartitionState, request: AcquireRequest, fetched: FetchedRecords
    ) -> None:
        self._partition = partition
        self._request = request
        self._fetched = fetched
        self._limits = partition.limits()
        self._first = fetched.batches[0].base
        self._result: list[Acquired] = []
        self._count = 0
        self._max_records, self._last = self._bounds()

    def _bounds(self) -> tuple[int, int]:
        """Return how many records may be acquired, and the last offset."""
        partition, max_records = self._partition, self._request.max_records
        last = self._fetched.batches[-1].last
        room = self._limits.record_locks - partition.count
        if room > 0:
            return min(max_records, room), last
        # The lock limit is reached: only released records may be acquired.
        available = partition.end_offset - self._fetched.offset + 1
        return min(max_records, available), min(last, partition.end_offset)

    def run(self) -> list[Acquired]:
        if self._max_records <= 0:
            return []
        partition = self._partition
        base = self._base()
        if self._last < base:
            # The lock limit is reached, and compaction has removed the released records.
            partition.advance()
            return []
        known = partition.in_flight.between(min(self._first, base), self._last)
        if not known:
            self._acquire_new(base, self._last)
            return self._result
        self._acquire_in_flight(base, known)
        end = known[-1].last
        if self._count < self._max_records and end < self._last:
            self._acquire_new(end + 1, self._last)
        if self._result:
            partition.move_gap(self._result[-1].last + 1)
        return self._result

    def _base(self) -> int:
        partition = self._partition
        self._archive_compacted()
        floor = partition.in_flight.floor(self._first)
        if floor is not None and floor.last >= self._first:
            return floor.first
        return max(self._first, partition.start_offset)

    def _archive_compacted(self) -> None:
        """Archive the records before the first fetched batch: compaction has removed them."""
        partition, offset = self._partition, self._fetched.offset
        if not partition.in_flight or offset >= self._first:
            return
        floor = partition.in_flight.floor(offset)
        low = floor.first if floor is not None and floor.last >= offset else offset
        among = partition.in_flight.between(low, self._first - 1)
        if partition.archive(offset, self._first, among, RecordState.AVAILABLE, count=True):
            partition.search_available = True

    # In-flight records.

    def _acquire_in_flight(self, base: int, known: Sequence[InFlightBatch]) -> None:
        gap_start = base
        for batch in known:
            if self._count >= self._max_records:
                return
            if self._partition.gap_in_force is not None:
                if gap_start < batch.first:
                    self._acquire_new(gap_start, batch.first - 1)
                gap_start = batch.last + 1
                if self._count >= self._max_records:
                    return
            if not self._acquire_batch(batch):
                self._max_records = 0
                return

    def _acquire_batch(self, batch: InFlightBatch) -> bool:
        """Acquire the available records of a batch; return False if no other record may join them."""
        throttled = self._is_throttled(batch)
        if throttled and self._count > 0:
            return False
        remaining = self._max_records - self._count
        split = self._request.strict and batch.last - batch.first + 1 > remaining
        shared = batch.batch_state
        if shared is not None and not shared.is_available:
            return True
        if shared is None or throttled or split or not batch.within(self._first, self._last):
            acquired = self._acquire_offsets(batch, remaining)
            return not (throttled and acquired)
        shared.acquire(self._request.member_id)
        shared.hold(self._partition.lock(batch.first, batch.last))
        self._result.append(Acquired(batch.first, batch.last, shared.delivery_count))
        self._count += batch.last - batch.first + 1
        return True

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Return whether available records of a batch have failed so often that they are throttled."""
        counts = (
            state.delivery_count
            for first, last, state in batch.runs()
            if state.is_available
            and (batch.batch_state is not None or self._first <= first <= last <= self._last)
        )
        return max(counts, default=0) >= self._throttle_count

    @property
    def _throttle_count(self) -> int:
        return max(_MIN_THROTTLE_COUNT, math.ceil(self._limits.delivery_count / 2))

    def _acquire_offsets(self, batch: InFlightBatch, remaining: int) -> int:
        """Acquire single records; return how many."""
        limit, throttle_count = self._limits.delivery_count, self._throttle_count
        acquired: list[Acquired] = []
        states = batch.split()
        max_records = remaining if self._request.strict else None
        max_throttled: int | None = None
        for offset, state in states.items():
            if offset > self._last:
                break
            if offset < self._first or not state.is_available:
                continue
            if limit > 2 and state.delivery_count == limit - 1 and acquired:
                break
            if state.delivery_count >= throttle_count and max_throttled is None:
                max_throttled = max(1, len(states) >> (state.delivery_count - throttle_count + 1))
            acquired.append(self._acquire_offset(offset, state))
            if limit > 2 and state.delivery_count == limit:
                break
            if len(acquired) in (max_records, max_throttled):
                break
        self._result += joined(acquired)
        self._count += len(acquired)
        return len(acquired)

    def _acquire_offset(self, offset: int, state: InFlightState) -> Acquired:
        state.acquire(self._request.member_id)
        state.hold(self._partition.lock(offset, offset))
        return Acquired(offset, offset, state.delivery_count)

    # New records.

    def _acquire_new(self, first: int, last: int) -> None:
        partition, max_records = self._partition, self._max_records - self._count
        if not partition.in_flight and partition.end_offset > first:
            first = partition.end_offset
        if max_records < last - first + 1:
            end = self._batch_end(first + max_records - 1)
            last = min(end, last) if partition.gap_in_force is not None else end
        last_delivered = last
        if self._request.strict and max_records < last - first + 1:
            last_delivered = first + max_records - 1
            self._put(first, last).split_after(last_delivered)
            partition.search_available = True
            self._result.append(Acquired(first, last_delivered, 1))
        else:
            self._result += [self._put_acquired(*span) for span in self._spans(first, last)]
        if partition.in_flight.first.first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        partition.move_gap(last_delivered + 1)
        self._count += last_delivered - first + 1

    def _put_acquired(self, first: int, last: int) -> Acquired:
        self._put(first, last)
        return Acquired(first, last, 1)

    def _put(self, first: int, last: int) -> InFlightBatch:
        state = InFlightState(RecordState.ACQUIRED, 1, self._request.member_id)
        state.hold(self._partition.lock(first, last))
        batch = InFlightBatch(first, last, state)
        self._partition.in_flight.put(batch)
        return batch

    def _spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Split offsets into spans of at least `batch_size` that end with batches of the log."""
        size = self._request.batch_size
        if self._request.strict or last - first + 1 <= size:
            return [(first, last)]
        spans = []
        for batch in self._fetched.batches:
            if batch.base > last:
                break
            if batch.base - first >= size:
                spans.append((first, batch.base - 1))
                first = batch.base
        return [*spans, (first, last)]

    def _batch_end(self, offset: int) -> int:
        """Return the last offset of the fetched batch that contains an offset."""
        for batch in self._fetched.batches:
            if batch.base <= offset <= batch.last:
                return batch.last
        return offset


def joined(acquired: Sequence[Acquired]) -> list[Acquired]:
    """Join neighbours with equal delivery counts."""
    result: list[Acquired] = []
    for each in acquired:
        before = result[-1] if result else None
        if (
            before is not None
            and before.last + 1 == each.first
            and before.delivery_count == each.delivery_count
        ):
            result[-1] = before._replace(last=each.last)
        else:
            result.append(each)
    return result


def aborted_batches(
    batches: Iterable[FetchedBatch], aborted: Sequence[tuple[int, int]]
) -> list[FetchedBatch]:
    """Return the batches of aborted transactions, given as producer id and first offset."""
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last:
            producers.add(waiting.pop()[0])
        if batch.aborts:
            producers.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def without(
    ranges: Iterable[tuple[int, int, int]], dropped: Sequence[FetchedBatch]
) -> Iterator[tuple[int, int, int]]:
    """Remove the offsets of these batches from ranges (first, last, count)."""
    for first, last, count in ranges:
        for batch in dropped:
            if batch.last < first or batch.base > last:
                continue
            if batch.base > first:
                yield first, batch.base - 1, count
            first = batch.last + 1
        if first <= last:
            yield first, last, count
