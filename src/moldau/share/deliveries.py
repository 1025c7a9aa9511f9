"""Where records stand between being handed out and being done with.

A `Delivery` is the state of one record, or of all records of a batch as long as they share it. Changes that
have to be stored first are transitions: the new state is in force at once, and is taken back if it could not
be stored. A `Lock` keeps what a member was given from the others until its time is up.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import NamedTuple

NOBODY = ""
_MANY_LOCKS = 256


class RecordState(IntEnum):
    """With the numbers Kafka stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class StateBatch(NamedTuple):
    """A run of records in the same state, as it is stored."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


class Lock:
    """What a member was given at one time; it is in force for those deliveries that still point to it."""

    __slots__ = ("deadline_ms", "expired", "first", "holders", "last")

    def __init__(self, deadline_ms: int, first: int, last: int) -> None:
        self.deadline_ms = deadline_ms
        self.first = first
        self.last = last
        self.expired = False
        self.holders = 0


class Locks:
    """The locks of one partition, the first to run out first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Lock]] = []
        self._taken = 0
        self._limit = _MANY_LOCKS

    def take(self, deadline_ms: int, first: int, last: int) -> Lock:
        lock = Lock(deadline_ms, first, last)
        self._taken += 1
        heapq.heappush(self._heap, (deadline_ms, self._taken, lock))
        if len(self._heap) > self._limit:
            # The newest has no holder yet.
            self._heap = [each for each in self._heap if each[2].holders or each[2] is lock]
            heapq.heapify(self._heap)
            self._limit = max(_MANY_LOCKS, 2 * len(self._heap))
        return lock

    def next_deadline(self) -> int | None:
        """When the next one runs out; None while nothing is locked."""
        while self._heap and not self._heap[0][2].holders:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[Lock]:
        """Those that have run out, which is noted on them."""
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            lock = heapq.heappop(self._heap)[2]
            if lock.holders:
                lock.expired = True
                found.append(lock)
        return found


class _Before(NamedTuple):
    state: RecordState
    member_id: str
    #: How often a record might be delivered when the transition began.
    limit: int


class Delivery:
    __slots__ = ("_before", "_final", "count", "lock", "member_id", "state")

    def __init__(self, state: RecordState, count: int, member_id: str = NOBODY) -> None:
        self.state = state
        #: How often the record has been handed out.
        self.count = count
        self.member_id = member_id
        self.lock: Lock | None = None
        self._before: _Before | None = None
        self._final = False

    def copy(self) -> Delivery:
        """The same for one record of the batch; not for one in transition."""
        copied = Delivery(self.state, self.count, self.member_id)
        copied.hold(self.lock)
        return copied

    @property
    def in_transition(self) -> bool:
        return self._before is not None

    @property
    def is_free(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._before is None

    @property
    def is_done(self) -> bool:
        return self.state.is_terminal and self._before is None

    def hold(self, lock: Lock | None) -> None:
        self.let_go()
        self.lock = lock
        if lock is not None:
            lock.holders += 1

    def let_go(self) -> None:
        if self.lock is not None:
            self.lock.holders -= 1
            self.lock = None

    def acquire(self, member_id: str) -> None:
        """Hand it out; it is free."""
        self.state = RecordState.ACQUIRED
        self.count += 1
        self.member_id = member_id

    def give_up(self, state: RecordState, limit: int) -> bool:
        """It is no longer with its member; False when that is being decided already, or it is with nobody."""
        if self._before is not None or self.state is not RecordState.ACQUIRED:
            return False
        self.state = RecordState.ARCHIVED if self._spent(state, limit) else state
        self.member_id = NOBODY
        return True

    def begin(self, state: RecordState, limit: int) -> bool:
        """The same as a transition, which `complete` ends."""
        before = _Before(self.state, self.member_id, limit)
        if not self.give_up(state, limit):
            return False
        self._before = before
        return True

    def _spent(self, state: RecordState, limit: int) -> bool:
        return state is RecordState.AVAILABLE and self.count >= limit

    def complete(self, stored: bool) -> None:
        before, self._before = self._before, None
        if stored or self._final or before is None:
            self.let_go()
        elif self.lock is not None and self.lock.expired:
            self.state = RecordState.ARCHIVED if self.count >= before.limit else RecordState.AVAILABLE
            self.member_id = NOBODY
            self.let_go()
        else:
            self.state, self.member_id = before.state, before.member_id

    def archive(self) -> None:
        """It is never handed out again, whatever becomes of a transition."""
        self._final = True
        self.state = RecordState.ARCHIVED
        self.member_id = NOBODY
        self.let_go()
