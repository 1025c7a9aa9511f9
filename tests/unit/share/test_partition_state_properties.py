"""A share partition against a model: no record is acquired by two members, none is lost, and none is
delivered more often than `share.delivery.count.limit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau.base.errors import KafkaError
from moldau.share.acknowledgement import Acknowledgement, acknowledge, release
from moldau.share.acquisition import AcquireRequest, FetchedBatch, FetchedRecords, acquire
from moldau.share.partition_state import ShareLimits, SharePartitionState, StateTransition
from moldau.share.record_state import RecordState
from moldau.share.state_batches import StateBatch, combine

LIMIT = 3
LOCK_MS = 1_000
MEMBERS = st.sampled_from("abc")


@dataclass
class Stored:
    """The state at the share coordinator."""

    start: int = 0
    batches: tuple[StateBatch, ...] = ()


@dataclass
class Model:
    """By offset: the member and its lock deadline, the delivery count, and whether the record is complete."""

    holders: dict[int, tuple[str, int]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    #: Accepted or rejected by a member: never to be delivered again.
    final: set[int] = field(default_factory=set)


class SharePartitionMachine(RuleBasedStateMachine):
    @initialize(locks=st.sampled_from([20, 200]))
    def begin(self, locks: int) -> None:
        self.now = 0
        self.limits = ShareLimits(LIMIT, locks, LOCK_MS)
        self.log: list[FetchedBatch] = []
        self.end = 0
        #: Offsets without a record.
        self.gaps: set[int] = set()
        self.stored = Stored()
        self.model = Model()
        self.open: list[tuple[str, StateTransition, dict[int, int]]] = []
        self._load()

    def _load(self) -> None:
        self.share = SharePartitionState(lambda: self.limits, lambda: self.now)
        self.share.load(self.stored.start, 1, self.stored.batches)

    def _store(self, batches: list[StateBatch]) -> None:
        start = self.share.start_offset
        self.stored = Stored(start, combine(self.stored.batches, batches, start))

    # Steps.

    @rule(sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4), gap=st.integers(0, 2))
    def append(self, sizes: list[int], gap: int) -> None:
        """Append batches; compaction leaves a gap."""
        for size in sizes:
            self.log.append(FetchedBatch(self.end, self.end + size - 1, 100))
            self.gaps.update(range(self.end + size, self.end + size + gap))
            self.end += size + gap

    @rule(
        member=MEMBERS,
        most=st.integers(1, 12),
        size=st.integers(1, 10),
        strict=st.booleans(),
        batches=st.integers(1, 5),
    )
    def fetch(self, member: str, most: int, size: int, strict: bool, batches: int) -> None:
        if not self.share.can_acquire():
            return
        offset = self.share.next_fetch_offset()
        found = [batch for batch in self.log if batch.last >= offset][:batches]
        given = acquire(self.share, AcquireRequest(member, most, size, strict), FetchedRecords(offset, found))
        total = 0
        for first, last, count in given:
            for each in range(first, last + 1):
                holder = self.model.holders.get(each)
                assert holder is None, f"{each} is acquired by {holder} and was delivered to {member}"
                assert each not in self.model.final, f"{each} was acknowledged and delivered again"
                assert count == self.model.counts.get(each, 0) + 1
                assert count <= LIMIT
                self.model.counts[each] = count
                self.model.holders[each] = (member, self.now + LOCK_MS)
                total += 1
        assert not strict or total <= most

    @rule(member=MEMBERS, which=st.integers(0, 60), length=st.integers(1, 10), data=st.data())
    def acknowledge(self, member: str, which: int, length: int, data: st.DataObject) -> None:
        """Acknowledge from a record that the member has acquired, if there is any."""
        held = sorted(offset for offset, (holder, _) in self.model.holders.items() if holder == member)
        start = held[which % len(held)] if held and which else which
        per_record = data.draw(st.booleans())
        kinds = data.draw(
            st.lists(
                st.sampled_from([1, 2, 3, 4]),
                min_size=length if per_record else 1,
                max_size=length if per_record else 1,
            )
        )
        wanted = Acknowledgement(start, start + length - 1, kinds)
        before = self.share.start_offset
        whole = range(max(start, before), start + length)
        offsets = [each for each in whole if each not in self.gaps or each in self.model.holders]
        mine = all(self._holds(member, each) for each in offsets)
        try:
            transition = acknowledge(self.share, member, [wanted])
        except KafkaError:
            assert not (mine and offsets and len(offsets) == len(whole)), (
                "a member could not acknowledge its records"
            )
            return
        assert mine, "a member acknowledged records of others"
        types = {each: int(wanted.type_at(each)) for each in offsets}
        for each, kind in types.items():
            if kind == 4:
                self.model.holders[each] = (member, self.now + LOCK_MS)
        self.open.append((member, transition, {each: kind for each, kind in types.items() if kind != 4}))

    def _holds(self, member: str, offset: int) -> bool:
        pending = any(offset in types for _, _, types in self.open)
        return not pending and self.model.holders.get(offset, ("", 0))[0] == member

    @rule(stored=st.sampled_from([True, True, True, False]))
    def storing_ends(self, stored: bool) -> None:
        if not self.open:
            return
        member, transition, types = self.open.pop(0)
        if stored and transition.changes:
            self._store(transition.batches)
        self.share.complete(transition, stored)
        for offset, kind in types.items():
            expired = self.model.holders.get(offset, (member, 0))[1] <= self.now
            if stored or expired:
                self.model.holders.pop(offset, None)
            if stored and kind in (1, 3):
                self.model.final.add(offset)
                self.model.done.add(offset)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        transition = release(self.share, member)
        pending = {offset for _, _, types in self.open for offset in types}
        held = {
            offset: 2
            for offset, (holder, _) in self.model.holders.items()
            if holder == member and offset not in pending
        }
        self.open.append((member, transition, held))

    @rule(milliseconds=st.sampled_from([10, 10, 10, 400, 1_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        expired = self.share.expire()
        if expired:
            self._store(expired)
        self.share.advance()
        pending = {offset for _, _, types in self.open for offset in types}
        for offset, (_, until) in list(self.model.holders.items()):
            if until <= self.now and offset not in pending:
                del self.model.holders[offset]

    @rule(rarely=st.integers(0, 5))
    def the_leader_changes(self, rarely: int) -> None:
        """Load the persisted state: acquisitions and delivery counts since the last write are lost."""
        if rarely != 5:
            return
        self.open.clear()
        self.model.holders.clear()
        self._load()
        known = {
            offset: batch.delivery_count
            for batch in self.stored.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        self.model.counts = {offset: known.get(offset, 0) for offset in self.model.counts}

    # Invariants.

    @invariant()
    def nothing_is_lost(self) -> None:
        """Check that records before the start offset are complete or were delivered `LIMIT` times."""
        for offset in range(min(self.share.start_offset, self.end)):
            spent = self.model.counts.get(offset, 0) >= LIMIT
            assert offset in self.model.done or offset in self.gaps or spent, f"{offset} is lost"
            self.model.done.add(offset)

    @invariant()
    def what_is_held_is_acquired(self) -> None:
        pending = {offset for _, _, types in self.open for offset in types}
        for offset, (member, _) in self.model.holders.items():
            batch = self.share.in_flight.floor(offset)
            if offset in pending or offset < self.share.start_offset:
                continue
            assert batch is not None
            delivery = batch.at(offset)
            assert delivery is not None
            assert (delivery.state, delivery.member_id) == (RecordState.ACQUIRED, member)

    @invariant()
    def locks_are_limited(self) -> None:
        """Check the limit of locks; a batch may exceed it."""
        assert self.share.count <= self.limits.record_locks + 10


TestSharePartition = SharePartitionMachine.TestCase
TestSharePartition.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)
