"""The state of a share partition at its leader: in-flight records, start offset and end offset.

All records before `start_offset` are complete. Records from there to `end_offset` are in flight; later ones
were never acquired. The start offset advances only over acknowledged or archived records, so no record is
lost. `acquisition` acquires records and `acknowledgement` acknowledges them, both with the operations of this
module. Nothing here does I/O: changes to persist are returned as a `StateTransition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.share.in_flight import InFlightBatch, InFlightBatches, InFlightState
from moldau.share.locks import AcquisitionLock, AcquisitionLocks
from moldau.share.record_state import RecordEvent, RecordState
from moldau.share.state_batches import StateBatch


class ShareLimits(NamedTuple):
    """The configs of a share group that limit deliveries."""

    delivery_count: int = 5
    record_locks: int = 2_000
    lock_ms: int = 30_000
    renewal: bool = True


class Gap:
    """Offsets between the persisted in-flight batches; they may never have been acquired."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        #: The end offset when the state was loaded; once it advances, the gap has been passed.
        self.end = end


class StateTransition:
    """Changes that are in force and become final once they are persisted."""

    def __init__(self) -> None:
        self.changes: list[tuple[InFlightState, StateBatch]] = []

    def add(self, state: InFlightState, first: int, last: int) -> None:
        self.changes.append((state, StateBatch(first, last, state.state, state.delivery_count)))

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
        #: The number of complete records from the start offset on.
        self.complete_count = 0
        self.in_flight = InFlightBatches()
        self.locks = AcquisitionLocks()
        self.gap: Gap | None = None
        #: Whether in-flight records may be available again.
        self.search_available = False

    def load(self, start_offset: int, state_epoch: int, batches: Iterable[StateBatch]) -> None:
        """Restore the persisted state."""
        self.start_offset, self.state_epoch = start_offset, state_epoch
        gap_start, previous = -1, start_offset - 1
        for batch in batches:
            if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"The persisted state has an invalid batch: {batch}."
                )
            if gap_start == -1 and batch.first_offset > previous + 1:
                gap_start = previous + 1
            previous = batch.last_offset
            state = RecordState(batch.state)
            in_flight = InFlightState(state, batch.delivery_count)
            self.in_flight.put(InFlightBatch(batch.first_offset, batch.last_offset, in_flight))
            if state.is_terminal:
                self.complete_count += batch.last_offset - batch.first_offset + 1
        self.end_offset = start_offset
        if self.in_flight:
            self.search_available = True
            self.end_offset = self.in_flight.last.last
            self.gap = Gap(gap_start, self.end_offset) if gap_start != -1 else None
            self.advance()

    # Fetching.

    @property
    def gap_in_force(self) -> Gap | None:
        return self.gap if self.gap is not None and self.gap.end == self.end_offset else None

    @property
    def count(self) -> int:
        """The number of in-flight records, including complete ones."""
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    def next_fetch_offset(self) -> int:
        if not self.in_flight or self.start_offset > self.in_flight.last.last:
            self.search_available = False
            return self.end_offset
        found = self._first_available() if self.search_available else None
        if found is None:
            self.search_available = False
            return self.end_offset + 1
        return found

    def _first_available(self) -> int | None:
        gap = self.gap_in_force
        gap_start = -1 if gap is None else gap.start
        for batch in self.in_flight:
            if gap is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for first, _, state in batch.runs():
                if state.is_available:
                    return first
        return None

    def can_acquire(self) -> bool:
        """Return whether `share.partition.max.record.locks` allows acquiring records."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.count < self.limits().record_locks

    def move_gap(self, offset: int) -> None:
        """Note that all offsets before `offset` have been fetched."""
        if self.gap is None:
            return
        if self.gap.end == self.end_offset and offset <= self.gap.end:
            self.gap.start = offset
        else:
            self.gap = None

    def lock(self, first: int, last: int) -> AcquisitionLock:
        return self.locks.take(self.now_ms() + self.limits().lock_ms, first, last)

    # Transitions.

    def complete(self, transition: StateTransition, persisted: bool) -> bool:
        """Finish or roll back a transition; return whether the start offset has advanced."""
        for state, batch in transition.changes:
            state.complete_transition(persisted)
            if state.state is RecordState.AVAILABLE:
                self.search_available = True
            if not persisted and RecordState(batch.state).is_terminal and not state.state.is_terminal:
                self.complete_count -= self.records_from_start(batch.first_offset, batch.last_offset)
        return self.advance() if persisted else False

    def records_from_start(self, first: int, last: int) -> int:
        return last - max(self.start_offset, first) + 1 if last >= self.start_offset else 0

    def count_complete(self, state: InFlightState, first: int, last: int) -> None:
        if state.state.is_terminal:
            self.complete_count += self.records_from_start(first, last)

    # Expired locks.

    def expire(self) -> list[StateBatch]:
        """Release the records of expired acquisition locks; return the state batches to persist."""
        changed: list[StateBatch] = []
        limit = self.limits().delivery_count
        for lock in self.locks.expire(self.now_ms()):
            floor = self.in_flight.floor(lock.first)
            for batch in self.in_flight.between(lock.first if floor is None else floor.first, lock.last):
                changed += self._expire(batch, lock, limit)
        return changed

    def _expire(self, batch: InFlightBatch, lock: AcquisitionLock, limit: int) -> list[StateBatch]:
        self.split_at_start(batch)
        changed = []
        for first, last, state in batch.runs():
            event = RecordEvent.ARCHIVE if last < self.start_offset else RecordEvent.RELEASE
            if state.lock is lock and state.try_update(event, limit):
                state.release_lock()
                changed.append(StateBatch(first, last, state.state, state.delivery_count))
                self.search_available |= state.state is RecordState.AVAILABLE
                self.count_complete(state, first, last)
        return changed

    def split_at_start(self, batch: InFlightBatch, member_id: str | None = None) -> None:
        """Split an acquired batch at the start offset: records before it are archived, later ones are not."""
        shared = batch.batch_state
        if (
            shared is None
            or shared.state is not RecordState.ACQUIRED
            or not batch.straddles(self.start_offset)
        ):
            return
        if member_id is None or shared.member_id == member_id:
            batch.split()

    # The start offset.

    def log_start_moved(self, offset: int) -> None:
        """Move the start offset to the new log start offset."""
        if offset <= self.start_offset:
            return
        if not self.in_flight:
            self.start_offset = self.end_offset = offset
            self.complete_count = 0
            return
        removed = self._complete_between(self.start_offset, offset)
        if self.archive(self.start_offset, offset, list(self.in_flight), RecordState.AVAILABLE, count=False):
            self.search_available = True
        self.start_offset = offset
        self.complete_count -= removed
        self.end_offset = max(self.end_offset, offset)

    def _complete_between(self, start: int, end: int) -> int:
        return sum(
            max(0, min(end - 1, last) - max(start, first) + 1)
            for batch in self.in_flight
            for first, last, state in batch.runs()
            if state.state.is_terminal
        )

    def archive(
        self, start: int, end: int, batches: Sequence[InFlightBatch], state: RecordState, *, count: bool
    ) -> bool:
        """Archive the records in `state` from `start` up to `end`; return whether there were any."""
        found = False
        for batch in batches:
            if batch.first >= end:
                break
            if batch.batch_state is not None and not batch.within(start, end - 1):
                if batch.batch_state.state is not state:
                    continue
                batch.split()
            for first, last, in_flight in batch.runs():
                if in_flight.state is state and start <= first and last < end:
                    in_flight.archive()
                    self.complete_count += last - first + 1 if count else 0
                    found = True
        return found

    def advance(self) -> bool:
        """Advance the start offset over complete records; return whether it has advanced."""
        if not self._may_advance():
            return False
        last_complete, complete = self._last_complete()
        if last_complete == -1:
            return False
        if last_complete == self.in_flight.last.last:
            self.start_offset = self.end_offset = last_complete + 1
            self.in_flight.clear()
            self.complete_count = 0
            return True
        batch = self.in_flight.floor(last_complete)
        keep = (
            self.in_flight.higher(last_complete)
            if batch is not None and batch.last == last_complete
            else None
        )
        if keep is not None:
            self.start_offset = max(self.start_offset, keep.first)
            if self.gap_in_force is not None:
                self.start_offset = min(self.gap_in_force.start, self.start_offset)
            self.in_flight.remove_before(keep.first)
        elif batch is not None:
            self.start_offset = max(self.start_offset, last_complete + 1)
            self.in_flight.remove_before(batch.first)
        self.complete_count -= complete
        return True

    def _may_advance(self) -> bool:
        batch = self.in_flight.floor(self.start_offset) if self.in_flight else None
        state = None if batch is None else batch.at(self.start_offset)
        return state is not None and state.is_complete

    def _last_complete(self) -> tuple[int, int]:
        """Return the last offset up to which all records are complete, and their number."""
        last_complete, complete = -1, 0
        gap = self.gap_in_force
        for batch in self.in_flight:
            if gap is not None and batch.last >= gap.start:
                break
            for first, last, state in batch.runs():
                if not state.is_complete:
                    return last_complete, complete
                last_complete = last
                complete += self.records_from_start(first, last)
        return last_complete, complete
