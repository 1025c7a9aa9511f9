"""Verdicts in the JSON of Burrow's HTTP API, version 3.

A `totallag` of which a part is unknown is null. The members `lag_seconds` and `reason` are ours; Burrow's
clients ignore members that they do not know.
Commits carry the time at which they were observed, as `timestamp` and as `observedAt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from moldau.base.ids import TopicPartition
from moldau.lag.evaluation.rules import Commit, Status
from moldau.lag.evaluation.verdicts import GroupLag, PartitionLag

Json = dict[str, Any]
_UNKNOWN_OFFSET: Final = -1


def group_status(cluster: str, name: str, lag: GroupLag | None, *, all_partitions: bool) -> Json:
    """The member `status` of a consumer's status; with `all_partitions`, also partitions that are OK."""
    if lag is None:
        return _status(cluster, name, Status.NOTFOUND, 1.0, [], 0, None, 0)
    worst = lag.worst
    shown = (each for each in lag.partitions if all_partitions or each.status is not Status.OK)
    status = _status(
        cluster,
        name,
        lag.burrow_status,
        lag.complete,
        [partition_status(each) for each in shown],
        len(lag.partitions),
        None if worst is None else partition_status(worst),
        lag.total_lag,
    )
    return status | {"lag_seconds": lag.lag_seconds, "reason": lag.reason}


def _status(
    cluster: str,
    group: str,
    status: Status,
    complete: float,
    partitions: list[Json],
    partition_count: int,
    maxlag: Json | None,
    total: int | None,
) -> Json:
    return {
        "cluster": cluster,
        "group": group,
        "status": status.name,
        "complete": complete,
        "partitions": partitions,
        "partition_count": partition_count,
        "maxlag": maxlag,
        "totallag": total,
    }


def partition_status(lag: PartitionLag) -> Json:
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "owner": lag.host,
        "client_id": lag.client_id,
        "status": lag.status.name,
        "start": commit(lag.first),
        "end": commit(lag.last),
        "current_lag": lag.lag or 0,
        "complete": lag.complete,
        "lag_seconds": lag.lag_seconds,
        "reason": lag.reason,
    }


def commit(value: Commit | None) -> Json | None:
    if value is None:
        return None
    return {
        "offset": value.offset,
        "timestamp": value.time_ms,
        "observedAt": value.time_ms,
        "lag": value.lag,
    }


def group_topics(
    lag: GroupLag, commits: Mapping[TopicPartition, Sequence[Commit]], intervals: int
) -> dict[str, list[Json]]:
    """The member `topics` of a consumer's detail: a list per topic, whose index is the partition."""
    topics: dict[str, list[Json]] = {}
    for each in lag.partitions:
        partitions = topics.setdefault(each.topic, [])
        while len(partitions) <= each.partition:
            partitions.append(_detail([], None, intervals))
        known = commits.get(TopicPartition(each.topic, each.partition), ())
        partitions[each.partition] = _detail(known, each, intervals)
    return topics


def _detail(commits: Sequence[Commit], lag: PartitionLag | None, intervals: int) -> Json:
    """A partition; its missing commits are null and come first."""
    offsets: list[Json | None] = [None] * (intervals - len(commits)) if commits else []
    return {
        "offsets": offsets + [commit(each) for each in commits],
        "owner": lag.host if lag else "",
        "client_id": lag.client_id if lag else "",
        "current-lag": (lag.lag or 0) if lag else 0,
    }


def topic_offsets(ends: Mapping[int, int], partitions: int) -> list[int]:
    """The log end offsets of all partitions, by index; -1 if the leader has not answered yet."""
    return [ends.get(index, _UNKNOWN_OFFSET) for index in range(max(partitions, max(ends, default=-1) + 1))]


def consumers_of(topic: str, groups: Iterable[GroupLag]) -> list[str]:
    return [group.group for group in groups if any(each.topic == topic for each in group.partitions)]
