"""Verdicts about partitions and groups: the output of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.lag.evaluation.rules import Commit, Status
from moldau.metrics.end_offsets import Age


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of a group in a partition.

    `committed` is None if a member owns the partition but has not committed. `complete` is the fraction of
    the window that was observed; below the required fraction the status is OK and, unless there is no lag,
    `judged` is False.
    """

    topic: str
    partition: int
    status: Status
    judged: bool
    complete: float
    committed: int | None
    end_offset: int | None
    start_offset: int | None
    lag: int | None
    age: Age | None
    first: Commit | None
    last: Commit | None
    member_id: str = ""
    client_id: str = ""
    host: str = ""
    reason: str | None = None
    #: False if the group has committed an offset of a partition that the topic does not have.
    exists: bool = True

    @property
    def lag_seconds(self) -> float | None:
        """Seconds since the record at the committed offset was appended; 0 without lag, None if unknown."""
        return None if self.age is None else self.age.ms / 1000


@dataclass(frozen=True, slots=True)
class GroupLag:
    """The lag of a group. Its status is the worst of its partitions; `error` says what could not be read.

    `unread` are the topics with committed offsets that could not be read, `offsets_read` is False if none
    could be read so far.
    """

    group: str
    type: str
    state: str
    members: int
    status: Status
    complete: float
    partitions: tuple[PartitionLag, ...]
    reason: str | None
    error: str | None = None
    unread: frozenset[str] = frozenset()
    offsets_read: bool = True

    @property
    def topic_lags(self) -> dict[str, int | None]:
        """The lag by topic, None if that of a partition is unknown: a part would look like less lag."""
        sums: dict[str, int | None] = {}
        for each in self.partitions:
            if each.committed is None or (each.lag is None and not each.exists):
                continue
            total = sums.get(each.topic, 0)
            sums[each.topic] = None if total is None or each.lag is None else total + each.lag
        return sums | dict.fromkeys(self.unread)

    @property
    def total_lag(self) -> int | None:
        """The lag in records over all partitions; None if a part of it is unknown."""
        lags = list(self.topic_lags.values())
        known = [each for each in lags if each is not None]
        return sum(known) if self.offsets_read and len(known) == len(lags) else None

    @property
    def burrow_status(self) -> Status:
        """The status in Burrow's words for groups: OK, WARN or ERR."""
        return min(self.status, Status.ERR)

    @property
    def worst(self) -> PartitionLag | None:
        """The partition with the most lag."""
        return max(self.partitions, key=lambda each: each.lag or 0, default=None)

    @property
    def judged(self) -> bool:
        """Whether all partitions with commits are judged."""
        return all(each.judged for each in self.partitions if each.committed is not None)

    @property
    def lag_seconds(self) -> float | None:
        """The longest lag in seconds of all partitions."""
        known = [each.lag_seconds for each in self.partitions if each.lag_seconds is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class LagSnapshot:
    """All groups after a round. `topics` has the log end offsets of every topic that a group reads, as far as
    the leaders of its partitions have answered; `partition_counts` says how many it has.

    `error` is the reason if the last round failed; the rest is then the result of the round before.
    """

    time_ms: int = 0
    cluster_id: str | None = None
    groups: Mapping[str, GroupLag] = field(default_factory=dict)
    topics: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    error: str | None = None
    partition_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst status of all groups."""
        return max((each.status for each in self.groups.values()), default=Status.OK)
