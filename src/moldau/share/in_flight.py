"""The in-flight records of a share partition: batches by offset, with one state or a state for every offset.

A change that must be persisted is a transition: the new state is in force immediately and is rolled back if
it cannot be persisted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from moldau.share.locks import AcquisitionLock
from moldau.share.record_state import RECORD_TRANSITIONS, RecordEvent, RecordState

NO_MEMBER = ""


class _Rollback(NamedTuple):
    member_id: str
    #: `share.delivery.count.limit` when the transition started.
    max_deliveries: int


class InFlightState:
    """The state of one record, or of all records of a batch as long as they share it."""

    __slots__ = ("_archived", "_rollback", "delivery_count", "lock", "member_id", "state")

    def __init__(self, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock: AcquisitionLock | None = None
        self._rollback: _Rollback | None = None
        self._archived = False

    def copy(self) -> InFlightState:
        """Copy the state of a batch for one of its records; the batch must not be in transition."""
        copied = InFlightState(self.state, self.delivery_count, self.member_id)
        copied.hold(self.lock)
        return copied

    @property
    def in_transition(self) -> bool:
        return self._rollback is not None

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._rollback is None

    @property
    def is_complete(self) -> bool:
        return self.state.is_terminal and self._rollback is None

    def hold(self, lock: AcquisitionLock | None) -> None:
        self.release_lock()
        self.lock = lock
        if lock is not None:
            lock.holders += 1

    def release_lock(self) -> None:
        if self.lock is not None:
            self.lock.holders -= 1
            self.lock = None

    def acquire(self, member_id: str) -> None:
        self.state = RECORD_TRANSITIONS.after(self.state, RecordEvent.ACQUIRE)
        self.delivery_count += 1
        self.member_id = member_id

    def undo_acquire(self) -> None:
        """Make a record available that was acquired with its batch but not delivered."""
        self.release_lock()
        self.state = RECORD_TRANSITIONS.after(self.state, RecordEvent.RELEASE)
        self.member_id = NO_MEMBER
        self.delivery_count -= 1

    def try_update(self, event: RecordEvent, max_deliveries: int) -> bool:
        """Take an acquired record from its member; False if it is not acquired or is in transition.

        A record released after its last allowed delivery is archived.
        """
        if self._rollback is not None or self.state is not RecordState.ACQUIRED:
            return False
        if event is RecordEvent.RELEASE and self.delivery_count >= max_deliveries:
            event = RecordEvent.ARCHIVE
        self.state = RECORD_TRANSITIONS.after(self.state, event)
        self.member_id = NO_MEMBER
        return True

    def start_transition(self, event: RecordEvent, max_deliveries: int) -> bool:
        """Like `try_update`, as a transition that `complete_transition` ends."""
        rollback = _Rollback(self.member_id, max_deliveries)
        if not self.try_update(event, max_deliveries):
            return False
        self._rollback = rollback
        return True

    def complete_transition(self, persisted: bool) -> None:
        rollback, self._rollback = self._rollback, None
        if persisted or self._archived or rollback is None:
            self.release_lock()
            return
        self.state = RECORD_TRANSITIONS.after(self.state, RecordEvent.ROLL_BACK)
        self.member_id = rollback.member_id
        if self.lock is not None and self.lock.expired:
            self.try_update(RecordEvent.RELEASE, rollback.max_deliveries)
            self.release_lock()

    def archive(self) -> None:
        """Archive the record for good, whatever the outcome of a pending transition."""
        self._archived = True
        self.state = RECORD_TRANSITIONS.after(self.state, RecordEvent.ARCHIVE)
        self.member_id = NO_MEMBER
        self.release_lock()


class InFlightBatch:
    """Records that were acquired together. They share one state until their states differ."""

    __slots__ = ("batch_state", "first", "last", "offset_states")

    def __init__(self, first: int, last: int, state: InFlightState) -> None:
        self.first = first
        self.last = last
        self.batch_state: InFlightState | None = state
        #: By offset, in ascending order.
        self.offset_states: dict[int, InFlightState] | None = None

    def split(self) -> dict[int, InFlightState]:
        """Give every record its own state, and return the states by offset."""
        if self.offset_states is None:
            shared, self.batch_state = self.batch_state, None
            self.offset_states = (
                {} if shared is None else {offset: shared.copy() for offset in self.offsets()}
            )
            if shared is not None:
                shared.release_lock()
        return self.offset_states

    def split_after(self, last_delivered: int) -> None:
        """Make the records after `last_delivered` available: they were acquired but not delivered."""
        for offset, state in self.split().items():
            if offset > last_delivered:
                state.undo_acquire()

    def offsets(self) -> range:
        return range(self.first, self.last + 1)

    def within(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last

    def straddles(self, offset: int) -> bool:
        """Return whether the batch starts before `offset` and ends at or after it."""
        return self.first < offset <= self.last

    def runs(self) -> Iterator[tuple[int, int, InFlightState]]:
        """Yield first offset, last offset and state of each run of records."""
        if self.batch_state is not None:
            yield self.first, self.last, self.batch_state
        else:
            for offset, state in (self.offset_states or {}).items():
                yield offset, offset, state

    def at(self, offset: int) -> InFlightState | None:
        """Return the state of one record; for an offset after the batch, that of its last record."""
        if self.batch_state is not None:
            return self.batch_state
        return None if self.offset_states is None else self.offset_states.get(min(offset, self.last))


class InFlightBatches:
    """Batches sorted by first offset; they do not overlap."""

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return (self._batches[key] for key in self._keys)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._keys[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._keys[-1]]

    def put(self, batch: InFlightBatch) -> None:
        if batch.first not in self._batches:
            if not self._keys or batch.first > self._keys[-1]:
                self._keys.append(batch.first)
            else:
                self._keys.insert(bisect_left(self._keys, batch.first), batch.first)
        self._batches[batch.first] = batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that starts at or before `offset`."""
        number = bisect_right(self._keys, offset)
        return self._batches[self._keys[number - 1]] if number else None

    def higher(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that starts after `offset`."""
        number = bisect_right(self._keys, offset)
        return self._batches[self._keys[number]] if number < len(self._keys) else None

    def between(self, low: int, high: int) -> list[InFlightBatch]:
        """Return the batches that start from `low` to `high`."""
        start, end = bisect_left(self._keys, low), bisect_right(self._keys, high)
        return [self._batches[key] for key in self._keys[start:end]]

    def remove_before(self, key: int) -> None:
        """Remove the batches that start before `key`."""
        number = bisect_left(self._keys, key)
        for removed in self._keys[:number]:
            del self._batches[removed]
        del self._keys[:number]

    def clear(self) -> None:
        self._keys.clear()
        self._batches.clear()
