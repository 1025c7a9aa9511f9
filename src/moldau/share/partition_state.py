"""A partition as one share group reads it: which records are on their way, and how far the group is through.

Everything before `start_offset` is done with; records from there to `end_offset` are in flight; what follows
has never been handed out. The start moves over records that are acknowledged or archived, and over nothing
else, so no record is lost. Handing out is the work of `acquisition`, what members say of records that of
`acknowledgement`; here is what both build on. Nothing here waits: what has to be stored is given back as a
`StateTransition`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.share.deliveries import Delivery, Lock, Locks, RecordState, StateBatch
from moldau.share.in_flight import InFlight, InFlightBatch

log = logging.getLogger(__name__)


class ShareLimits(NamedTuple):
    """The settings of a group that concern its records."""

    delivery_count: int = 5
    record_locks: int = 2_000
    lock_ms: int = 30_000
    renewal: bool = True


class Gap:
    """Records between those that were stored as in flight; they may never have been handed out."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        #: The end of what was in flight; once more is, the gap has been passed.
        self.end = end


class StateTransition:
    """Changes that are in force, and become final once they are stored."""

    def __init__(self) -> None:
        self.changes: list[tuple[Delivery, StateBatch]] = []

    def add(self, delivery: Delivery, first: int, last: int) -> None:
        self.changes.append((delivery, StateBatch(first, last, delivery.state, delivery.count)))

    @property
    def batches(self) -> list[StateBatch]:
        return [batch for _, batch in self.changes]


class SharePartitionState:
    def __init__(self, limits: Callable[[], ShareLimits], now_ms: Callable[[], int]) -> None:
        self.limits = limits
        self.now_ms = now_ms
        self.start_offset = 0
        self.end_offset = 0
        self.state_epoch = 0
        #: How many records from the start on are done with.
        self.complete_count = 0
        self.in_flight = InFlight()
        self.locks = Locks()
        self.gap: Gap | None = None
        #: Whether records among those in flight may be free again.
        self.look_back = False

    def load(self, start_offset: int, state_epoch: int, batches: Iterable[StateBatch]) -> None:
        """As it was stored."""
        self.start_offset, self.state_epoch = start_offset, state_epoch
        gap_start, previous = -1, start_offset - 1
        for batch in batches:
            if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the stored state is damaged: {batch}")
            if gap_start == -1 and batch.first_offset > previous + 1:
                gap_start = previous + 1
            previous = batch.last_offset
            state = RecordState(batch.state)
            delivery = Delivery(state, batch.delivery_count)
            self.in_flight.put(InFlightBatch(batch.first_offset, batch.last_offset, delivery))
            if state.is_terminal:
                self.complete_count += batch.last_offset - batch.first_offset + 1
        self.end_offset = start_offset
        if self.in_flight:
            self.look_back = True
            self.end_offset = self.in_flight.last.last
            self.gap = Gap(gap_start, self.end_offset) if gap_start != -1 else None
            self.advance()

    # What is to be handed out next.

    @property
    def gap_in_force(self) -> Gap | None:
        return self.gap if self.gap is not None and self.gap.end == self.end_offset else None

    @property
    def count(self) -> int:
        """How many records are in flight, those that are done with among them."""
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    def next_fetch_offset(self) -> int:
        if not self.in_flight or self.start_offset > self.in_flight.last.last:
            self.look_back = False
            return self.end_offset
        found = self._first_free() if self.look_back else None
        if found is None:
            self.look_back = False
            return self.end_offset + 1
        return found

    def _first_free(self) -> int | None:
        gap = self.gap_in_force
        gap_start = -1 if gap is None else gap.start
        for batch in self.in_flight:
            if gap is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for first, _, delivery in batch.runs():
                if delivery.is_free:
                    return first
        return None

    def can_acquire(self) -> bool:
        """Whether there is anything to hand out, as far as the limit of records in flight goes."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.count < self.limits().record_locks

    def move_gap(self, offset: int) -> None:
        """Everything before `offset` has been looked at."""
        if self.gap is None:
            return
        if self.gap.end == self.end_offset and offset <= self.gap.end:
            self.gap.start = offset
        else:
            self.gap = None

    def lock(self, first: int, last: int) -> Lock:
        return self.locks.take(self.now_ms() + self.limits().lock_ms, first, last)

    # The end of a transition.

    def complete(self, transition: StateTransition, stored: bool) -> bool:
        """What a transition changed is final, or is taken back; whether the start has moved."""
        for delivery, batch in transition.changes:
            delivery.complete(stored)
            if delivery.state is RecordState.AVAILABLE:
                self.look_back = True
            if not stored and RecordState(batch.state).is_terminal and not delivery.state.is_terminal:
                self.complete_count -= self.records_from_start(batch.first_offset, batch.last_offset)
        return self.advance() if stored else False

    def records_from_start(self, first: int, last: int) -> int:
        return last - max(self.start_offset, first) + 1 if last >= self.start_offset else 0

    def counted(self, delivery: Delivery, first: int, last: int) -> None:
        if delivery.state.is_terminal:
            self.complete_count += self.records_from_start(first, last)

    # Locks that run out.

    def expire(self) -> list[StateBatch]:
        """Give free what members have kept too long; what is to be stored of it."""
        changed: list[StateBatch] = []
        limit = self.limits().delivery_count
        for lock in self.locks.due(self.now_ms()):
            floor = self.in_flight.floor(lock.first)
            for batch in self.in_flight.between(lock.first if floor is None else floor.first, lock.last):
                changed += self._expire(batch, lock, limit)
        return changed

    def _expire(self, batch: InFlightBatch, lock: Lock, limit: int) -> list[StateBatch]:
        self.split_at_start(batch)
        changed = []
        for first, last, delivery in batch.runs():
            state = RecordState.ARCHIVED if last < self.start_offset else RecordState.AVAILABLE
            if delivery.lock is lock and delivery.give_up(state, limit):
                delivery.let_go()
                changed.append(StateBatch(first, last, delivery.state, delivery.count))
                self.look_back |= delivery.state is RecordState.AVAILABLE
                self.counted(delivery, first, last)
        return changed

    def split_at_start(self, batch: InFlightBatch, member_id: str | None = None) -> None:
        """What is before the start is archived, what is behind it goes on: that needs states of their own."""
        whole = batch.whole
        if whole is None or whole.state is not RecordState.ACQUIRED or not batch.straddles(self.start_offset):
            return
        if member_id is None or whole.member_id == member_id:
            batch.split()

    # The start.

    def log_start_moved(self, offset: int) -> None:
        """The log no longer has what is before `offset`."""
        if offset <= self.start_offset:
            return
        if not self.in_flight:
            self.start_offset = self.end_offset = offset
            self.complete_count = 0
            return
        gone = self._done_between(self.start_offset, offset)
        if self.archive(self.start_offset, offset, list(self.in_flight), RecordState.AVAILABLE, count=False):
            self.look_back = True
        self.start_offset = offset
        self.complete_count -= gone
        self.end_offset = max(self.end_offset, offset)

    def _done_between(self, start: int, end: int) -> int:
        return sum(
            max(0, min(end - 1, last) - max(start, first) + 1)
            for batch in self.in_flight
            for first, last, delivery in batch.runs()
            if delivery.state.is_terminal
        )

    def archive(
        self, start: int, end: int, batches: Sequence[InFlightBatch], state: RecordState, *, count: bool
    ) -> bool:
        """Records in this state from `start` up to `end` are never handed out again; whether there were
        any.
        """
        found = False
        for batch in batches:
            if batch.first >= end:
                break
            if batch.whole is not None and not batch.within(start, end - 1):
                if batch.whole.state is not state:
                    continue
                batch.split()
            for first, last, delivery in batch.runs():
                if delivery.state is state and start <= first and last < end:
                    delivery.archive()
                    self.complete_count += last - first + 1 if count else 0
                    found = True
        return found

    def advance(self) -> bool:
        """Move the start over what is done with; whether it has moved."""
        if not self._may_advance():
            return False
        last_done, done = self._last_done()
        if last_done == -1:
            return False
        if last_done == self.in_flight.last.last:
            self.start_offset = self.end_offset = last_done + 1
            self.in_flight.clear()
            self.complete_count = 0
            return True
        batch = self.in_flight.floor(last_done)
        keep = self.in_flight.higher(last_done) if batch is not None and batch.last == last_done else None
        if keep is not None:
            self.start_offset = max(self.start_offset, keep.first)
            if self.gap_in_force is not None:
                self.start_offset = min(self.gap_in_force.start, self.start_offset)
            self.in_flight.remove_before(keep.first)
        elif batch is not None:
            self.start_offset = max(self.start_offset, last_done + 1)
            self.in_flight.remove_before(batch.first)
        self.complete_count -= done
        return True

    def _may_advance(self) -> bool:
        batch = self.in_flight.floor(self.start_offset) if self.in_flight else None
        delivery = None if batch is None else batch.at(self.start_offset)
        return delivery is not None and delivery.is_done

    def _last_done(self) -> tuple[int, int]:
        """Up to where everything is done with, and how many of those count since the start."""
        last_done, done = -1, 0
        gap = self.gap_in_force
        for batch in self.in_flight:
            if gap is not None and batch.last >= gap.start:
                break
            for first, last, delivery in batch.runs():
                if not delivery.is_done:
                    return last_done, done
                last_done = last
                done += self.records_from_start(first, last)
        return last_done, done
