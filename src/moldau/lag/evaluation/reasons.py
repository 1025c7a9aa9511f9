"""A sentence with the likely reason of a verdict, from what is known about the group.

The first explanation that fits is taken, the more specific ones first: lost records, a missing leader, a
stopped consumer, a rebalance, a partition without a member, a quota, a hot partition, a single bad record, a
slow consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from moldau.base.ids import TopicPartition
from moldau.lag.evaluation.observation import Member, Quotas
from moldau.lag.evaluation.rules import Commit, Status, first_rewind
from moldau.lag.evaluation.verdicts import PartitionLag

#: Users whose quotas a sentence names.
_SHOWN_USERS: Final = 3
#: States of groups of all types in which partitions are being moved between members.
_REBALANCING: Final = frozenset(
    {"preparingrebalance", "completingrebalance", "assigning", "reconciling", "notready"}
)
#: A partition is hot if it receives this many times the average of the other partitions of its topic.
_HOT: Final = 3.0
#: Rebalances within a window that are themselves the reason.
_MANY_REBALANCES: Final = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a group beyond the offsets of one partition."""

    state: str
    members: Sequence[Member]
    #: Topics of which members are assigned partitions.
    topics: Set[str]
    #: Members that progress in some partition.
    progressing: Set[str]
    #: When the assignment changed within the window.
    rebalances: Sequence[int]
    #: Records per second that arrive in partitions; their sum and number by topic.
    rates: Mapping[TopicPartition, float]
    topic_totals: Mapping[str, tuple[float, int]]
    #: Partitions whose leader did not answer.
    unavailable: Set[TopicPartition]
    quotas: Quotas
    now_ms: int
    window_ms: int


def explain(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    """Return the likely reason of a verdict; None if it is OK."""
    if lag.status is Status.OK:
        return None
    for explanation in _EXPLANATIONS[lag.status]:
        sentence = explanation(lag, commits, evidence)
        if sentence is not None:
            if explanation in (_hot_partition, _slow):
                sentence += _quotas_of_users(lag, evidence)
            return sentence
    return None


def _lost_records(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if lag.start_offset is None or lag.committed is None or lag.start_offset <= lag.committed:
        return None
    lost = lag.start_offset - lag.committed
    return (
        f"{_name(lag)}: {lost} records after the committed offset {lag.committed} were deleted before they "
        f"were consumed; the log starts at {lag.start_offset} (retention.ms, retention.bytes)."
    )


def _no_leader(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if TopicPartition(lag.topic, lag.partition) not in evidence.unavailable:
        return None
    return f"{_name(lag)}: the leader of the partition does not answer; {_since(commits, evidence)}."


def _no_members(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if evidence.members or evidence.state.lower() in _REBALANCING:
        return None
    return f"{_name(lag)}: the group has no members, the consumer is stopped; {_since(commits, evidence)}."


def _rebalancing(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if evidence.state.lower() not in _REBALANCING:
        return None
    return f"{_name(lag)}: the group is rebalancing (state {evidence.state}); {_since(commits, evidence)}."


def _many_rebalances(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if len(evidence.rebalances) < _MANY_REBALANCES:
        return None
    return (
        f"{_name(lag)}: the group rebalanced {len(evidence.rebalances)} times within "
        f"{_seconds(evidence.window_ms)}; do members exceed max.poll.interval.ms or restart?"
    )


def _not_assigned(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if lag.member_id:
        return None
    if lag.topic not in evidence.topics:
        return (
            f"{_name(lag)}: no member reads the topic any more; if that is intended, delete its offsets "
            "(kafka-consumer-groups --delete-offsets)."
        )
    return (
        f"{_name(lag)}: no member is assigned this partition; the group has {len(evidence.members)} "
        f"member(s){_last_rebalance(evidence)}."
    )


def _one_partition(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    """The member progresses elsewhere, so it is this partition that blocks."""
    if lag.member_id not in evidence.progressing:
        return None
    return (
        f"{_name(lag)}: {_member(lag)} progresses on other partitions but not on this one; the record at "
        f"offset {lag.committed} may fail to be processed, or the partition is paused."
    )


def _stuck_member(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    if not lag.member_id:
        return f"{_name(lag)}: commits do not progress; {_since(commits, evidence)}."
    return (
        f"{_name(lag)}: {_member(lag)} is in the group but makes no progress; "
        f"{_since(commits, evidence)}{_last_rebalance(evidence)}."
    )


def _quota(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    limit = _limit(lag.client_id, evidence.quotas)
    if limit is None or not lag.member_id:
        return None
    return (
        f"{_name(lag)}: {_member(lag)} has a quota of {limit:,.0f} bytes per second (consumer_byte_rate) "
        "and may be throttled."
    )


def _limit(client_id: str, quotas: Quotas) -> float | None:
    """Return the limit of a client id whatever its user, in Kafka's order."""
    levels = (("", client_id), ("", ""), ("", None), (None, client_id), (None, ""))
    return next((quotas[level] for level in levels if level in quotas), None)


def _quotas_of_users(lag: PartitionLag, evidence: Evidence) -> str:
    """Return a sentence about the limits of users: brokers do not tell the user of a member."""
    found = sorted(
        (limit, user)
        for (user, client_id), limit in evidence.quotas.items()
        if user and client_id in (None, "", lag.client_id)
    )
    if not found or not lag.member_id:
        return ""
    users = ", ".join(f"{user} ({limit:,.0f} bytes per second)" for limit, user in found[:_SHOWN_USERS])
    more = f" and {len(found) - _SHOWN_USERS} more" if len(found) > _SHOWN_USERS else ""
    return f" Users with a quota (consumer_byte_rate) may be throttled: {users}{more}."


def _hot_partition(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    own = evidence.rates.get(TopicPartition(lag.topic, lag.partition))
    total, count = evidence.topic_totals.get(lag.topic, (0.0, 0))
    if not own or count < 2 or own < _HOT * (average := max(total - own, 0.0) / (count - 1)):
        return None
    times = f"{own / average:.1f} times as many as" if average else "while none arrive in"
    return (
        f"{_name(lag)}: {own:,.1f} records per second arrive, {times} the other partitions on average; "
        "is there a hot key?"
    )


def _slow(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    arriving = evidence.rates.get(TopicPartition(lag.topic, lag.partition))
    elapsed_ms = commits[-1].time_ms - commits[0].time_ms if commits else 0
    if arriving is None or not elapsed_ms:
        return f"{_name(lag)}: {_member(lag)} falls behind."
    consumed = (commits[-1].offset - commits[0].offset) * 1000 / elapsed_ms
    return (
        f"{_name(lag)}: {_member(lag)} consumes {consumed:,.1f} records per second while {arriving:,.1f} "
        f"arrive{_last_rebalance(evidence)}."
    )


def _rewound(lag: PartitionLag, commits: Sequence[Commit], evidence: Evidence) -> str | None:
    index = first_rewind(commits)
    if index is None:
        return None
    before, after = commits[index - 1], commits[index]
    ago = _seconds(evidence.now_ms - after.time_ms)
    return (
        f"{_name(lag)}: the committed offset went back from {before.offset} to {after.offset} {ago} ago; "
        "were the offsets reset, or does a second consumer commit to this group?"
    )


_Explanation = Callable[[PartitionLag, Sequence[Commit], Evidence], str | None]
_EXPLANATIONS: Final[Mapping[Status, tuple[_Explanation, ...]]] = {
    Status.STOP: (_lost_records, _no_leader, _no_members, _rebalancing, _many_rebalances, _not_assigned),
    Status.STALL: (_lost_records, _no_leader, _rebalancing, _many_rebalances, _one_partition, _stuck_member),
    Status.WARN: (_lost_records, _many_rebalances, _quota, _hot_partition, _slow),
    Status.REWIND: (_rewound,),
}


def _name(lag: PartitionLag) -> str:
    return f"{lag.topic}-{lag.partition}"


def _member(lag: PartitionLag) -> str:
    if not lag.member_id:
        return "the consumer"
    where = f" at {lag.host}" if lag.host else ""
    return f"the member {lag.member_id} (client id {lag.client_id}{where})"


def _since(commits: Sequence[Commit], evidence: Evidence) -> str:
    if len(commits) < 2:
        ago = evidence.now_ms - commits[-1].time_ms if commits else evidence.window_ms
        return f"no progress for at least {_seconds(ago)}"
    return f"the last progress was {_seconds(evidence.now_ms - commits[-1].time_ms)} ago"


def _last_rebalance(evidence: Evidence) -> str:
    if not evidence.rebalances:
        return ""
    return f"; the last rebalance was {_seconds(evidence.now_ms - evidence.rebalances[-1])} ago"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.0f} s"
