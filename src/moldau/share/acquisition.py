"""Handing records out: of what was read from the log, which go to the member that asked.

Records that came back are given again before new ones; new ones go out in whole batches of the log, joined or
cut by `batch_size`, unless the member asked for no more records than it named. Records that have failed often
go out in ever smaller groups, and at last alone, so that one bad record does not take others with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from moldau.share.aborted import FetchedBatch, aborted_batches, without
from moldau.share.deliveries import Delivery, RecordState
from moldau.share.in_flight import InFlightBatch
from moldau.share.partition_state import SharePartitionState

#: From this many deliveries on at least, records go out in smaller groups.
_MIN_CAUTION = 2


class Acquired(NamedTuple):
    """Records a member has been given, and for the how many-th time."""

    first: int
    last: int
    delivery_count: int


class AcquireRequest(NamedTuple):
    """What a member asks for."""

    member_id: str
    max_records: int
    batch_size: int
    #: Whether `max_records` must not be exceeded, even if that cuts a batch.
    strict: bool = False


class FetchedRecords(NamedTuple):
    """What was read from the log for it."""

    offset: int
    batches: Sequence[FetchedBatch]
    #: Producer and first offset of the transactions that came to nothing.
    aborted: Sequence[tuple[int, int]] = ()


def acquire(partition: SharePartitionState, wish: AcquireRequest, fetched: FetchedRecords) -> list[Acquired]:
    if wish.max_records <= 0 or not fetched.batches or fetched.batches[-1].last < partition.start_offset:
        return []
    acquired = _Acquisition(partition, wish, fetched).run()
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
    def __init__(self, partition: SharePartitionState, wish: AcquireRequest, fetched: FetchedRecords) -> None:
        self._partition = partition
        self._wish = wish
        self._fetched = fetched
        self._limits = partition.limits()
        self._first = fetched.batches[0].base
        self._result: list[Acquired] = []
        self._count = 0
        self._most, self._last = self._bounds()

    def _bounds(self) -> tuple[int, int]:
        """How many records may go out, and up to which offset."""
        partition, most = self._partition, self._wish.max_records
        last = self._fetched.batches[-1].last
        room = self._limits.record_locks - partition.count
        if room > 0:
            return min(most, room), last
        # Nothing new may go out, but what came back may.
        free = partition.end_offset - self._fetched.offset + 1
        return min(most, free), min(last, partition.end_offset)

    def run(self) -> list[Acquired]:
        if self._most <= 0:
            return []
        partition = self._partition
        base = self._base()
        known = partition.in_flight.between(min(self._first, base), self._last)
        if not known:
            self._take_new(base, self._last)
            return self._result
        self._take_known(base, known)
        end = known[-1].last
        if self._count < self._most and end < self._last:
            self._take_new(end + 1, self._last)
        if self._result:
            partition.move_gap(self._result[-1].last + 1)
        return self._result

    def _base(self) -> int:
        partition = self._partition
        self._archive_what_is_gone()
        floor = partition.in_flight.floor(self._first)
        if floor is not None and floor.last >= self._first:
            return floor.first
        return max(self._first, partition.start_offset)

    def _archive_what_is_gone(self) -> None:
        """The log was asked for `offset` and begins later: what lies between was compacted away."""
        partition, offset = self._partition, self._fetched.offset
        if not partition.in_flight or offset >= self._first:
            return
        floor = partition.in_flight.floor(offset)
        low = floor.first if floor is not None and floor.last >= offset else offset
        among = partition.in_flight.between(low, self._first - 1)
        if partition.archive(offset, self._first, among, RecordState.AVAILABLE, count=True):
            partition.look_back = True

    # What is in flight already.

    def _take_known(self, base: int, known: Sequence[InFlightBatch]) -> None:
        gap_start = base
        for batch in known:
            if self._count >= self._most:
                return
            if self._partition.gap_in_force is not None:
                if gap_start < batch.first:
                    self._take_new(gap_start, batch.first - 1)
                gap_start = batch.last + 1
                if self._count >= self._most:
                    return
            if not self._take_batch(batch):
                self._most = 0
                return

    def _take_batch(self, batch: InFlightBatch) -> bool:
        """What is free of it; False when nothing else may go out beside it."""
        careful = self._is_fragile(batch)
        if careful and self._count > 0:
            return False
        left = self._most - self._count
        cut = self._wish.strict and batch.last - batch.first + 1 > left
        whole = batch.whole
        if whole is not None and not whole.is_free:
            return True
        if whole is None or careful or cut or not batch.within(self._first, self._last):
            taken = self._take_some(batch, left)
            return not (careful and taken)
        whole.acquire(self._wish.member_id)
        whole.hold(self._partition.lock(batch.first, batch.last))
        self._result.append(Acquired(batch.first, batch.last, whole.count))
        self._count += batch.last - batch.first + 1
        return True

    def _is_fragile(self, batch: InFlightBatch) -> bool:
        """Whether records of it that are free have failed so often that they go out carefully."""
        free = (
            delivery.count
            for first, last, delivery in batch.runs()
            if delivery.is_free and (batch.whole is not None or self._first <= first <= last <= self._last)
        )
        return max(free, default=0) >= self._caution

    @property
    def _caution(self) -> int:
        return max(_MIN_CAUTION, math.ceil(self._limits.delivery_count / 2))

    def _take_some(self, batch: InFlightBatch, left: int) -> int:
        """Record by record."""
        limit, caution = self._limits.delivery_count, self._caution
        given: list[Acquired] = []
        states = batch.split()
        most = left if self._wish.strict else None
        careful_most: int | None = None
        for offset, delivery in states.items():
            if offset > self._last:
                break
            if offset < self._first or not delivery.is_free:
                continue
            if limit > 2 and delivery.count == limit - 1 and given:
                break
            if delivery.count >= caution and careful_most is None:
                careful_most = max(1, len(states) >> (delivery.count - caution + 1))
            given.append(self._give(offset, delivery))
            if limit > 2 and delivery.count == limit:
                break
            if len(given) in (most, careful_most):
                break
        self._result += joined(given)
        self._count += len(given)
        return len(given)

    def _give(self, offset: int, delivery: Delivery) -> Acquired:
        delivery.acquire(self._wish.member_id)
        delivery.hold(self._partition.lock(offset, offset))
        return Acquired(offset, offset, delivery.count)

    # What is new.

    def _take_new(self, first: int, last: int) -> None:
        partition, most = self._partition, self._most - self._count
        if not partition.in_flight and partition.end_offset > first:
            first = partition.end_offset
        if most < last - first + 1:
            end = self._end_of_batch_with(first + most - 1)
            last = min(end, last) if partition.gap_in_force is not None else end
        given_last = last
        if self._wish.strict and most < last - first + 1:
            given_last = first + most - 1
            self._put(first, last).split_at(given_last)
            partition.look_back = True
            self._result.append(Acquired(first, given_last, 1))
        else:
            self._result += [self._put_acquired(*span) for span in self._spans(first, last)]
        if partition.in_flight.first.first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        partition.move_gap(given_last + 1)
        self._count += given_last - first + 1

    def _put_acquired(self, first: int, last: int) -> Acquired:
        self._put(first, last)
        return Acquired(first, last, 1)

    def _put(self, first: int, last: int) -> InFlightBatch:
        delivery = Delivery(RecordState.ACQUIRED, 1, self._wish.member_id)
        delivery.hold(self._partition.lock(first, last))
        batch = InFlightBatch(first, last, delivery)
        self._partition.in_flight.put(batch)
        return batch

    def _spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """In pieces of at least `batch_size` that end where batches of the log end."""
        size = self._wish.batch_size
        if self._wish.strict or last - first + 1 <= size:
            return [(first, last)]
        spans = []
        for batch in self._fetched.batches:
            if batch.base > last:
                break
            if batch.base - first >= size:
                spans.append((first, batch.base - 1))
                first = batch.base
        return [*spans, (first, last)]

    def _end_of_batch_with(self, offset: int) -> int:
        """Where the log's batch ends that holds an offset."""
        for batch in self._fetched.batches:
            if batch.base <= offset <= batch.last:
                return batch.last
        return offset


def joined(given: Sequence[Acquired]) -> list[Acquired]:
    """Neighbours that were given equally often as one."""
    result: list[Acquired] = []
    for each in given:
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
