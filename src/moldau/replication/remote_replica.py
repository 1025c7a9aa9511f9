"""A follower in the leader's view: how far it has fetched, and when it was last caught up.

A follower is caught up if it has the whole log, or had it within `replica.lag.time.max.ms`. A follower that
is always slightly behind, because records arrive continuously, counts as caught up at the time of its
previous fetch if the present fetch reaches the log end offset of that time.
"""

from __future__ import annotations

import math

UNKNOWN = -1
NEVER = -math.inf


class RemoteReplica:
    """Times are monotonic milliseconds. `broker_epoch` is None until the first fetch."""

    __slots__ = (
        "broker_epoch",
        "id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, replica_id: int) -> None:
        self.id = replica_id
        self.forget(NEVER)

    def forget(self, caught_up_ms: float) -> None:
        """Reset the state, as a new leader knows only which followers are in sync."""
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.last_fetch_leader_end = UNKNOWN
        self.last_fetch_ms = NEVER
        self.last_caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None

    def begin_epoch(self, now_ms: float, leader_end: int, *, in_sync: bool) -> None:
        """Continue in a new epoch of the same leader; a follower out of sync must fetch first to count."""
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if in_sync else NEVER

    def fetched(
        self, offset: int, log_start_offset: int, leader_end: int, now_ms: float, broker_epoch: int
    ) -> None:
        """Record a fetch at `offset`, which confirms all before it; the log ended at `leader_end`."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def still_at_end(self, now_ms: float) -> None:
        """Record another fetch at the unchanged end of the log."""
        self.last_fetch_ms = now_ms
        self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)

    def is_caught_up(self, leader_end: int, now_ms: float, max_lag_ms: float) -> bool:
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_lag_ms
