"""Verdicts as JSON values: the output of `moldau lag --json` and the body of alerts."""

from __future__ import annotations

from typing import Any

from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag


def snapshot_document(snapshot: LagSnapshot) -> dict[str, Any]:
    return {
        "time": snapshot.time_ms,
        "cluster_id": snapshot.cluster_id,
        "status": snapshot.status.name,
        "error": snapshot.error,
        "groups": [group_document(each) for each in snapshot.groups.values()],
    }


def group_document(lag: GroupLag) -> dict[str, Any]:
    return {
        "group": lag.group,
        "type": lag.type,
        "state": lag.state,
        "members": lag.members,
        "status": lag.status.name,
        "complete": round(lag.complete, 3),
        "judged": lag.judged,
        "lag": lag.total_lag,
        "lag_seconds": lag.lag_seconds,
        "reason": lag.reason,
        "error": lag.error,
        "partitions": [partition_document(each) for each in lag.partitions],
    }


def partition_document(lag: PartitionLag) -> dict[str, Any]:
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "status": lag.status.name,
        "complete": round(lag.complete, 3),
        "judged": lag.judged,
        "committed_offset": lag.committed,
        "log_start_offset": lag.start_offset,
        "log_end_offset": lag.end_offset,
        "lag": lag.lag,
        "lag_seconds": lag.lag_seconds,
        "lag_seconds_is_lower_bound": lag.age is not None and not lag.age.exact,
        "member_id": lag.member_id,
        "client_id": lag.client_id,
        "host": lag.host,
        "reason": lag.reason,
    }
