"""Keeps the history of all groups and judges it after every round.

How it works. `observe` adds a round to the histories: an end offset for every partition, and a commit for
every partition of a group whose committed offset has changed. `snapshot` applies the rules to each partition.

A round reads committed offsets and therefore does not see a commit that repeats an offset. Whether a consumer
without progress still runs is known from the group instead: if a member owns the partition, the verdict is
STALL where the rules say STOP.

Invariants:

- A partition is judged only after it was observed for `minimum_complete` of the window.
- A topic that was deleted or created again, an offset that was deleted, and a group that has disappeared for
  a window leave no history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.lag.evaluation.history import Age, CommitHistory, EndOffsets
from moldau.lag.evaluation.observation import CommittedOffset, GroupObservation, Member, Round
from moldau.lag.evaluation.reasons import Evidence, explain
from moldau.lag.evaluation.rules import Commit, Status, partition_status
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag

_MOST_REBALANCES: Final = 8


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
class _Group:
    """The history of a group, and its last observation."""

    observed: GroupObservation
    #: When the group was listed, and when its offsets were read.
    seen_ms: int
    read_ms: int
    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    histories: dict[TopicPartition, CommitHistory] = field(default_factory=dict)
    owners: dict[TopicPartition, Member] = field(default_factory=dict)
    assignment: object = None
    rebalances: deque[int] = field(default_factory=lambda: deque(maxlen=_MOST_REBALANCES))


class LagEvaluator:
    def __init__(self, rules: LagRules) -> None:
        self._rules = rules
        self._groups: dict[str, _Group] = {}
        self._ends: dict[TopicPartition, EndOffsets] = {}
        self._topic_ids: dict[str, Uuid] = {}
        self._round = Round(0, {}, {})

    def observe(self, found: Round) -> None:
        """Add a round to the history."""
        self._round = found
        self._forget_topics(found)
        for partition, offset in found.end_offsets.items():
            self._ends.setdefault(partition, EndOffsets()).add(found.time_ms, offset)
        for name, observed in found.groups.items():
            self._observe_group(name, observed, found)
        self._forget_groups(found)

    def snapshot(self, cluster_id: str | None = None) -> LagSnapshot:
        """Judge all groups at the time of the last round."""
        topics: dict[str, dict[int, int]] = {}
        for (topic, partition), ends in self._ends.items():
            if ends.last is not None:
                topics.setdefault(topic, {})[partition] = ends.last
        groups = {name: self._judge_group(self._groups[name]) for name in sorted(self._groups)}
        return LagSnapshot(self._round.time_ms, cluster_id, groups, topics)

    def commits(self, group: str) -> dict[TopicPartition, list[Commit]]:
        """Return the commits of a group in the window."""
        known = self._groups.get(group)
        return {} if known is None else {each: history.commits() for each, history in known.histories.items()}

    def _forget_topics(self, found: Round) -> None:
        gone = set(found.deleted_topics)
        for topic, topic_id in found.topic_ids.items():
            known = self._topic_ids.setdefault(topic, topic_id)
            if topic_id not in (known, ZERO_UUID):
                gone.add(topic)
                self._topic_ids[topic] = topic_id
        if not gone:
            return
        for topic in found.deleted_topics:
            self._topic_ids.pop(topic, None)
        self._ends = {each: ends for each, ends in self._ends.items() if each.topic not in gone}
        for group in self._groups.values():
            for partition in [each for each in group.histories if each.topic in gone]:
                del group.histories[partition]
                group.committed.pop(partition, None)

    def _forget_groups(self, found: Round) -> None:
        """Forget groups that have disappeared, and end offsets that no group needs."""
        oldest = found.time_ms - self._rules.window_ms
        for name in [each for each, group in self._groups.items() if group.seen_ms < oldest]:
            del self._groups[name]
        used = {partition for group in self._groups.values() for partition in group.committed}
        used.update(partition for group in self._groups.values() for partition in group.owners)
        if len(used) < len(self._ends):
            self._ends = {each: ends for each, ends in self._ends.items() if each in used}

    def _observe_group(self, name: str, observed: GroupObservation, found: Round) -> None:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group(observed, found.time_ms, found.time_ms)
        group.observed, group.seen_ms = observed, found.time_ms
        if observed.members is not None:
            self._observe_members(group, observed, found.time_ms)
        if observed.committed is None:
            return
        group.read_ms, before = found.time_ms, group.committed
        group.committed = {
            partition: at
            for partition, at in observed.committed.items()
            if partition.topic not in found.deleted_topics
        }
        for partition in [each for each in group.histories if each not in group.committed]:
            del group.histories[partition]
        for partition, at in group.committed.items():
            self._observe_commit(group, partition, before.get(partition), at, found)

    def _observe_members(self, group: _Group, observed: GroupObservation, now_ms: int) -> None:
        members = observed.members or ()
        assignment = (observed.epoch, frozenset((each.member_id, each.partitions) for each in members))
        if group.assignment is not None and assignment != group.assignment:
            group.rebalances.append(now_ms)
        group.assignment = assignment
        group.owners = {partition: each for each in members for partition in each.partitions}

    def _observe_commit(
        self,
        group: _Group,
        partition: TopicPartition,
        before: CommittedOffset | None,
        at: CommittedOffset,
        found: Round,
    ) -> None:
        history = group.histories.get(partition)
        if history is None:
            history = group.histories[partition] = CommitHistory(self._rules.capacity, found.time_ms)
        # Without a current end offset the lag at this commit stays unknown.
        end = found.end_offsets.get(partition)
        position = _position(at, end)
        if at.lag is not None and before is not None and before.offset <= at.offset:
            # The lag is read before the end offset, so that the position may seem to go back.
            position = max(position, history.last_offset or 0)
        if history.last_offset != position:
            lag = None if end is None else _lag(at, end)
            history.add(Commit(position, found.time_ms, lag), self._rules.window_ms)

    def _judge_group(self, group: _Group) -> GroupLag:
        partitions = sorted(group.committed.keys() | group.owners.keys())
        judged = [self._judge(group, each) for each in partitions]
        explained = tuple(self._with_reasons(group, judged))
        status = max((each.status for each in explained), default=Status.OK)
        worst = max(
            (each for each in explained if each.reason and each.status == status),
            key=lambda each: each.lag or 0,
            default=None,
        )
        whole = sum(each.complete == 1.0 for each in explained)
        return GroupLag(
            group=group.observed.group,
            type=group.observed.type,
            state=group.observed.state,
            members=len(group.observed.members or ()),
            status=status,
            complete=whole / len(explained) if explained else 0.0,
            partitions=explained,
            total_lag=sum(each.lag or 0 for each in explained),
            reason=worst.reason if worst else None,
            error=group.observed.error,
        )

    def _judge(self, group: _Group, partition: TopicPartition) -> PartitionLag:
        # Offsets that could not be read in this round are judged as of the round before.
        now, rules = group.read_ms, self._rules
        at, history = group.committed.get(partition), group.histories.get(partition)
        ends, owner = self._ends.get(partition), group.owners.get(partition)
        end = None if ends is None else ends.last
        lag = None if at is None or end is None else _lag(at, end)
        commits = [] if history is None else history.commits()
        complete = 0.0 if history is None else min((now - history.first_seen_ms) / rules.window_ms, 1.0)
        observed = bool(commits) and complete >= rules.minimum_complete
        status = Status.OK
        if observed and lag is not None and ends is not None:
            status = partition_status(
                commits,
                lag=lag,
                recent_end_offset=ends.at(now - rules.window_ms),
                now_ms=now,
                allowed_lag=rules.allowed_lag,
            )
        if status is Status.STOP and owner is not None:
            status = Status.STALL
        return PartitionLag(
            topic=partition.topic,
            partition=partition.partition,
            status=status,
            judged=observed or (lag is not None and lag <= rules.allowed_lag),
            complete=complete,
            committed=None if at is None else at.offset,
            end_offset=end,
            start_offset=self._round.start_offsets.get(partition),
            lag=lag,
            age=_age(at, lag, ends, now),
            first=commits[0] if commits else None,
            last=commits[-1] if commits else None,
            member_id=owner.member_id if owner else "",
            client_id=owner.client_id if owner else "",
            host=owner.host.lstrip("/") if owner else "",
        )

    def _with_reasons(self, group: _Group, partitions: list[PartitionLag]) -> Iterable[PartitionLag]:
        if all(each.status is Status.OK for each in partitions):
            return partitions
        since = self._round.time_ms - self._rules.window_ms
        evidence = Evidence(
            state=group.observed.state,
            members=group.observed.members or (),
            partitions=partitions,
            rebalances=tuple(at for at in group.rebalances if at >= since),
            rates={each: self._ends[each].rate(since) for each in group.committed if each in self._ends},
            unavailable=group.committed.keys() - self._round.end_offsets.keys(),
            quotas=self._round.quotas,
            now_ms=self._round.time_ms,
            window_ms=self._rules.window_ms,
        )
        return [self._with_reason(group, each, evidence) for each in partitions]

    @staticmethod
    def _with_reason(group: _Group, lag: PartitionLag, evidence: Evidence) -> PartitionLag:
        history = group.histories.get(TopicPartition(lag.topic, lag.partition))
        commits = [] if history is None else history.commits()
        return replace(lag, reason=explain(lag, commits, evidence))


def _lag(at: CommittedOffset, end: int) -> int:
    return at.lag if at.lag is not None else max(end - at.offset, 0)


def _position(at: CommittedOffset, end: int | None) -> int:
    """Return the offset that the group has reached.

    Members of a share group complete records in any order: its start offset may stay while its lag decreases.
    """
    return at.offset if at.lag is None or end is None else max(at.offset, end - at.lag)


def _age(at: CommittedOffset | None, lag: int | None, ends: EndOffsets | None, now_ms: int) -> Age | None:
    if at is None or lag is None or ends is None:
        return None
    return Age(0, True) if lag == 0 else ends.age_of(_position(at, ends.last), now_ms)
