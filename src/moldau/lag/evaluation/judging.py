"""Judges a group: the verdict and the lag of each of its partitions, and the reason.

A round reads committed offsets and therefore does not see a commit that repeats an offset. Whether a consumer
without progress still runs is known from the group instead: if a member owns the partition, the verdict is
STALL where the rules say STOP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from moldau.base.ids import TopicPartition
from moldau.lag.evaluation.history import CommitHistory
from moldau.lag.evaluation.observation import CommittedOffset, Round
from moldau.lag.evaluation.reasons import Evidence, explain
from moldau.lag.evaluation.rules import Commit, Status, partition_status
from moldau.lag.evaluation.state import GroupState, LagRules, lag_of, position_of
from moldau.lag.evaluation.verdicts import GroupLag, PartitionLag
from moldau.metrics.end_offsets import NO_AGE, Age, EndOffsets

#: A consumer that lets records wait for longer than this many windows is stopped, however rarely it commits.
_SLOWEST_PACE: Final = 10


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges groups as of the last round."""

    rules: LagRules
    round: Round
    ends: Mapping[TopicPartition, EndOffsets]

    def judge(self, group: GroupState) -> GroupLag:
        partitions = [self._partition(group, each) for each in sorted(group.committed | group.owners)]
        status = max((each.status for each in partitions), default=Status.OK)
        if status is not Status.OK:
            partitions = self._explained(group, partitions)
        worst = max(
            (each for each in partitions if each.reason and each.status == status),
            key=lambda each: each.lag or 0,
            default=None,
        )
        whole = sum(each.complete == 1.0 for each in partitions)
        return GroupLag(
            group=group.observed.group,
            type=group.observed.type,
            state=group.observed.state,
            members=len(group.observed.members or ()),
            status=status,
            complete=whole / len(partitions) if partitions else 0.0,
            partitions=tuple(partitions),
            reason=worst.reason if worst else None,
            error=group.observed.error,
            unread=frozenset(each.topic for each in group.observed.unread - group.committed.keys()),
            offsets_read=group.offsets_read,
        )

    def _partition(self, group: GroupState, partition: TopicPartition) -> PartitionLag:
        history = group.histories.get(partition)
        # Offsets that could not be read in this round are judged as of the round in which they were.
        now = self.round.time_ms if history is None else history.read_ms
        at, ends = group.committed.get(partition), self.ends.get(partition)
        owner = group.owners.get(partition)
        end = None if ends is None else ends.last
        lag = None if at is None or end is None else lag_of(at, end)
        complete = 0.0
        if history is not None:
            complete = min((now - history.first_seen_ms) / self.rules.window_ms, 1.0)
        fine = lag is not None and lag <= self.rules.allowed_lag
        observed = history is not None and complete >= self.rules.minimum_complete
        status = Status.OK
        if observed and not fine and history is not None and lag is not None and ends is not None:
            status = self._status(history, ends, lag, now)
        if status is Status.STOP and owner is not None:
            status = Status.STALL
        return PartitionLag(
            topic=partition.topic,
            partition=partition.partition,
            status=status,
            judged=observed or fine,
            complete=complete,
            committed=None if at is None else at.offset,
            end_offset=end,
            start_offset=self.round.start_offsets.get(partition),
            lag=lag,
            age=_age(at, lag, ends, now),
            first=history.first if history else None,
            last=history.last if history else None,
            member_id=owner.member_id if owner else "",
            client_id=owner.client_id if owner else "",
            host=owner.host.lstrip("/") if owner else "",
            exists=self._exists(partition),
        )

    def _exists(self, partition: TopicPartition) -> bool:
        if partition.topic in self.round.missing_topics:
            return False
        count = self.round.partition_counts.get(partition.topic)
        return count is None or partition.partition < count

    def _status(self, history: CommitHistory, ends: EndOffsets, lag: int, now_ms: int) -> Status:
        commits, rules = history.commits(), self.rules
        *before, waiting_ms = _waits(commits, ends, now_ms, rules.allowed_lag)
        return partition_status(
            commits,
            lag=lag,
            recent_end_offset=ends.at(now_ms - rules.window_ms),
            waiting_ms=waiting_ms,
            pace_ms=min(sum(before), _SLOWEST_PACE * rules.window_ms),
            allowed_lag=rules.allowed_lag,
        )

    def _explained(self, group: GroupState, partitions: list[PartitionLag]) -> list[PartitionLag]:
        since = self.round.time_ms - self.rules.window_ms
        rates = self._rates(group, since)
        evidence = Evidence(
            state=group.observed.state,
            members=group.observed.members or (),
            topics={each.topic for each in group.owners},
            progressing={each.member_id for each in partitions if _progresses(each)},
            rebalances=tuple(at for at in group.rebalances if at >= since),
            rates=rates,
            topic_totals=_totals(rates),
            unavailable=group.committed.keys() - self.round.end_offsets.keys(),
            quotas=self.round.quotas,
            now_ms=self.round.time_ms,
            window_ms=self.rules.window_ms,
        )
        return [_explained(group, each, evidence) for each in partitions]

    def _rates(self, group: GroupState, since_ms: int) -> dict[TopicPartition, float]:
        rates: dict[TopicPartition, float] = {}
        for partition in group.committed:
            ends = self.ends.get(partition)
            if ends is not None and (rate := ends.rate(since_ms)) is not None:
                rates[partition] = rate
        return rates


def _waits(commits: Sequence[Commit], ends: EndOffsets, now_ms: int, allowed_lag: int) -> list[int]:
    """Return for how long the consumer had lag after each commit, until the next one or until now."""
    waits = []
    for each, until_ms in zip(commits, [*(each.time_ms for each in commits[1:]), now_ms], strict=True):
        appended = ends.appended(each.offset + allowed_lag)
        waits.append(0 if appended is None else max(until_ms - max(each.time_ms, appended.time_ms), 0))
    return waits


def _totals(rates: Mapping[TopicPartition, float]) -> dict[str, tuple[float, int]]:
    totals: dict[str, tuple[float, int]] = {}
    for (topic, _), rate in rates.items():
        total, count = totals.get(topic, (0.0, 0))
        totals[topic] = total + rate, count + 1
    return totals


def _progresses(lag: PartitionLag) -> bool:
    if lag.status is not Status.OK or not lag.judged or lag.first is None or lag.last is None:
        return False
    return lag.lag == 0 or lag.last.offset > lag.first.offset


def _explained(group: GroupState, lag: PartitionLag, evidence: Evidence) -> PartitionLag:
    if lag.status is Status.OK:
        return lag
    commits = group.histories[TopicPartition(lag.topic, lag.partition)].commits()
    return replace(lag, reason=explain(lag, commits, evidence))


def _age(at: CommittedOffset | None, lag: int | None, ends: EndOffsets | None, now_ms: int) -> Age | None:
    if at is None or lag is None or ends is None:
        return None
    return NO_AGE if lag == 0 else ends.age_of(position_of(at, ends.last), now_ms)
