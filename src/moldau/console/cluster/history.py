"""Rates of a cluster over time, computed from the differences of snapshots.

Kafka's protocol has no request for rates. Messages are counted by the end offsets, bytes by the sizes of the
leaders' replicas; a partition that shrinks (retention, compaction) counts as zero.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.base.ids import TopicPartition
from moldau.console.cluster.snapshot import Snapshot
from moldau.lag.evaluation.verdicts import LagSnapshot

#: An hour of refreshes.
_MAX_POINTS: Final = 1800
_MAX_LAG_POINTS: Final = 600
_MIN_S: Final = 1.0


class Rate(NamedTuple):
    time_ms: int
    messages: float
    bytes: float


class History:
    def __init__(self) -> None:
        self.rates: deque[Rate] = deque(maxlen=_MAX_POINTS)
        self._topics: Mapping[str, float] = {}
        self._lag: dict[str, deque[tuple[int, int]]] = {}
        self._time_ms = 0
        self._ends: Mapping[TopicPartition, int] = {}
        self._sizes: Mapping[TopicPartition, int] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add the rates since the snapshot before."""
        ends = _values(snapshot, "end")
        sizes = _values(snapshot, "size")
        seconds = (snapshot.time_ms - self._time_ms) / 1000
        if self._time_ms and seconds < _MIN_S:
            # An action has requested this snapshot; a rate over so short a time would be a spike.
            return
        if self._time_ms:
            self._topics = _topic_rates(self._ends, ends, seconds)
            self.rates.append(
                Rate(
                    snapshot.time_ms,
                    _growth(self._ends, ends) / seconds,
                    _growth(self._sizes, sizes) / seconds,
                )
            )
        self._time_ms = snapshot.time_ms
        # A partition whose leader did not answer continues where it was.
        self._ends = {**_kept(self._ends, snapshot), **ends}
        self._sizes = {**_kept(self._sizes, snapshot), **sizes}

    def topic_rate(self, topic: str) -> float | None:
        """Return the records per second that were written to a topic between the last two snapshots."""
        return self._topics.get(topic)

    def add_lag(self, lag: LagSnapshot) -> None:
        for name, group in lag.groups.items():
            points = self._lag.setdefault(name, deque(maxlen=_MAX_LAG_POINTS))
            total = group.total_lag
            if total is not None and (not points or points[-1][0] < lag.time_ms):
                points.append((lag.time_ms, total))
        for name in self._lag.keys() - lag.groups.keys():
            del self._lag[name]

    def lag_of(self, group: str) -> list[tuple[int, int]]:
        return list(self._lag.get(group, ()))


def _values(snapshot: Snapshot, name: str) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, each.index): value
        for topic in snapshot.topics.values()
        for each in topic.partitions
        if (value := getattr(each, name)) is not None
    }


def _growth(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> int:
    """A partition that was not known before counts with all it has if others were: its topic is new."""
    known = bool(before)
    return sum(max(value - before.get(at, 0 if known else value), 0) for at, value in after.items())


def _topic_rates(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[str, float]:
    found: dict[str, float] = {}
    for at, value in after.items():
        found[at.topic] = found.get(at.topic, 0.0) + max(value - before.get(at, 0), 0) / seconds
    return found


def _kept(values: Mapping[TopicPartition, int], snapshot: Snapshot) -> dict[TopicPartition, int]:
    return {at: value for at, value in values.items() if at.topic in snapshot.topics}
