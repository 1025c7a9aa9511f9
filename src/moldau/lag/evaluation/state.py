"""The history of all groups, to which every round is added.

A round adds an end offset for every partition, and a commit for every partition of a group whose committed
offset has changed. A topic that was deleted or created again, an offset that was deleted, and a group that
has disappeared for a window leave no history.

One failed request leaves the history as it was: a topic counts as deleted when several rounds in succession
have not found it, and an offset that cannot be read is kept for a window.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.lag.evaluation.history import CommitHistory
from moldau.lag.evaluation.observation import CommittedOffset, GroupObservation, Member, Round
from moldau.lag.evaluation.rules import Commit
from moldau.metrics.end_offsets import EndOffsets

_MAX_REBALANCES: Final = 8
#: Rounds in succession that must miss a topic: a broker that has just started may not know it yet.
_ROUNDS_MISSING: Final = 3


@dataclass(frozen=True, slots=True)
class LagRules:
    """How the course of the lag is judged."""

    window_ms: int = 120_000
    interval_ms: int = 10_000
    #: Lag in records that is never a problem.
    allowed_lag: int = 0
    #: The fraction of the window that must have been observed before a partition is judged.
    minimum_complete: float = 1.0

    @property
    def capacity(self) -> int:
        """The number of commits to keep: one per interval, at both ends of the window."""
        return -(-self.window_ms // self.interval_ms) + 1


@dataclass(slots=True)
class GroupState:
    """The history of a group, and its last observation."""

    observed: GroupObservation
    #: When the group was listed.
    seen_ms: int
    #: Whether the committed offsets could be read so far.
    offsets_read: bool = False
    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    histories: dict[TopicPartition, CommitHistory] = field(default_factory=dict)
    owners: dict[TopicPartition, Member] = field(default_factory=dict)
    assignment: object = None
    rebalances: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_REBALANCES))


class LagState:
    def __init__(self, rules: LagRules) -> None:
        self.rules = rules
        self.groups: dict[str, GroupState] = {}
        self.ends: dict[TopicPartition, EndOffsets] = {}
        self.partition_counts: dict[str, int] = {}
        self._topic_ids: dict[str, Uuid] = {}
        #: For how many rounds in succession a topic was missing.
        self._rounds_missing: dict[str, int] = {}
        self.round = Round(0, {}, {})

    def observe(self, found: Round) -> None:
        """Add a round to the history."""
        self.round = found
        deleted = self._deleted_topics(found)
        self._forget_topics(found, deleted)
        self.partition_counts.update(found.partition_counts)
        for partition, points in found.past.items():
            if partition not in self.ends:
                ends = self.ends[partition] = EndOffsets()
                for time_ms, offset in points:
                    ends.add(time_ms, offset)
        for partition, offset in found.end_offsets.items():
            self.ends.setdefault(partition, EndOffsets()).add(found.time_ms, offset)
        for name, observed in found.groups.items():
            self._observe_group(name, observed, found, deleted)
        self._forget_groups(found)

    def _deleted_topics(self, found: Round) -> frozenset[str]:
        before, self._rounds_missing = self._rounds_missing, {}
        for topic in found.missing_topics:
            self._rounds_missing[topic] = before.get(topic, 0) + 1
        return frozenset(topic for topic, rounds in self._rounds_missing.items() if rounds >= _ROUNDS_MISSING)

    def _forget_topics(self, found: Round, deleted: frozenset[str]) -> None:
        gone = set(deleted)
        for topic, topic_id in found.topic_ids.items():
            known = self._topic_ids.setdefault(topic, topic_id)
            if topic_id not in (known, ZERO_UUID):
                gone.add(topic)
                self._topic_ids[topic] = topic_id
        if not gone:
            return
        for topic in deleted:
            self._topic_ids.pop(topic, None)
        self.ends = {each: ends for each, ends in self.ends.items() if each.topic not in gone}
        for group in self.groups.values():
            for partition in [each for each in group.histories if each.topic in gone]:
                del group.histories[partition]
                group.committed.pop(partition, None)

    def _forget_groups(self, found: Round) -> None:
        """Forget groups that have disappeared, and end offsets that no group needs."""
        oldest = found.time_ms - self.rules.window_ms
        for name in [each for each, group in self.groups.items() if group.seen_ms < oldest]:
            del self.groups[name]
        used = {partition.topic for group in self.groups.values() for partition in group.committed}
        used.update(partition.topic for group in self.groups.values() for partition in group.owners)
        known = {each.topic for each in self.ends} | self.partition_counts.keys()
        if not used.issuperset(known):
            self.ends = {each: ends for each, ends in self.ends.items() if each.topic in used}
            self._topic_ids = {name: each for name, each in self._topic_ids.items() if name in used}
            counts = self.partition_counts.items()
            self.partition_counts = {name: count for name, count in counts if name in used}

    def _observe_group(
        self, name: str, observed: GroupObservation, found: Round, deleted: frozenset[str]
    ) -> None:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = GroupState(observed, found.time_ms)
        group.observed, group.seen_ms = observed, found.time_ms
        if observed.members is not None:
            self._observe_members(group, observed, found.time_ms)
        if observed.committed is None:
            return
        group.offsets_read = True
        before = group.committed
        read = {at: each for at, each in observed.committed.items() if at.topic not in deleted}
        group.committed = read | self._kept(group, observed, found, deleted)
        for partition in [each for each in group.histories if each not in group.committed]:
            del group.histories[partition]
        for partition, at in read.items():
            self._observe_commit(group, partition, before.get(partition), at, found)

    def _kept(
        self, group: GroupState, observed: GroupObservation, found: Round, deleted: frozenset[str]
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets that could not be read in this round but within the window."""
        oldest = found.time_ms - self.rules.window_ms
        return {
            partition: group.committed[partition]
            for partition in observed.unread
            if partition in group.committed
            and partition.topic not in deleted
            and group.histories[partition].read_ms >= oldest
        }

    def _observe_members(self, group: GroupState, observed: GroupObservation, now_ms: int) -> None:
        members = observed.members or ()
        assignment = (observed.epoch, frozenset((each.member_id, each.partitions) for each in members))
        if group.assignment is not None and assignment != group.assignment:
            group.rebalances.append(now_ms)
        group.assignment = assignment
        group.owners = {partition: each for each in members for partition in each.partitions}

    def _observe_commit(
        self,
        group: GroupState,
        partition: TopicPartition,
        before: CommittedOffset | None,
        at: CommittedOffset,
        found: Round,
    ) -> None:
        history = group.histories.get(partition)
        if history is None:
            history = group.histories[partition] = CommitHistory(self.rules.capacity, found.time_ms)
        history.read_ms = found.time_ms
        # Without a current end offset the lag at this commit stays unknown.
        end = found.end_offsets.get(partition)
        position = position_of(at, end)
        if at.lag is not None and before is not None and before.offset <= at.offset:
            # The lag is read before the end offset, so that the position may seem to go back.
            position = max(position, history.last_offset or 0)
        if history.last_offset != position:
            lag = None if end is None else lag_of(at, end)
            history.add(Commit(position, found.time_ms, lag), self.rules.window_ms)


def lag_of(at: CommittedOffset, end: int) -> int:
    return at.lag if at.lag is not None else max(end - at.offset, 0)


def position_of(at: CommittedOffset, end: int | None) -> int:
    """Return the offset that the group has reached.

    Members of a share group complete records in any order: its start offset may stay while its lag decreases.
    """
    return at.offset if at.lag is None or end is None else max(at.offset, end - at.lag)
