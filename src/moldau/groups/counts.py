"""Counters of the group coordinators of a node since its start, for metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    #: Partitions whose offset was committed.
    offset_commits: int = 0
    #: Partitions whose offset was deleted by a request.
    offset_deletions: int = 0
    #: Generations of classic groups.
    completed_rebalances: int = 0
    #: Epochs of groups of the consumer protocol.
    consumer_rebalances: int = 0
