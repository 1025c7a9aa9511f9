"""The timers of a consumer group's members. Whoever lets one run out is fenced: removed from the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.timer_keys import (
    join_key,
    member_timer_keys,
    rebalance_key,
    session_key,
    sync_key,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.timers import Timers

#: Gets group id, member id, the reason, and the epoch in which the member must still be; None means any.
Fence = Callable[[str, str, str, int | None], Decision[Entry, Any]]


class ConsumerTimers:
    def __init__(self, timers: Timers, fence: Fence) -> None:
        self._timers = timers
        self._fence = fence

    def heard_from(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """The member lives: its session begins anew."""
        self._timers.schedule(
            session_key(group_id, member_id),
            timeout_ms,
            lambda: self._fence(group_id, member_id, "its session has expired", None),
        )

    def expect_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """The member has its rebalance timeout to give partitions up."""
        member_id, epoch, timeout_ms = member.member_id, member.member_epoch, member.rebalance_timeout_ms
        reason = f"it has not left epoch {epoch} within {timeout_ms} ms"
        self._timers.schedule(
            rebalance_key(group_id, member_id),
            timeout_ms,
            lambda: self._fence(group_id, member_id, reason, epoch),
        )

    def revoked(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(rebalance_key(group_id, member_id))

    def expect_join(self, group_id: str, member: ConsumerMember) -> None:
        """A classic member that was told to rejoin has its rebalance timeout for it, from the first time."""
        key, member_id = join_key(group_id, member.member_id), member.member_id
        if not self._timers.is_scheduled(key):
            reason = "it has not joined again within its rebalance timeout"
            self._timers.schedule(
                key, member.rebalance_timeout_ms, lambda: self._fence(group_id, member_id, reason, None)
            )

    def joined(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(join_key(group_id, member_id))

    def expect_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        reason = "it has not asked for its assignment within its rebalance timeout"
        self._timers.schedule(
            sync_key(group_id, member_id), timeout_ms, lambda: self._fence(group_id, member_id, reason, None)
        )

    def synced(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(sync_key(group_id, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        for key in member_timer_keys(group_id, member_id):
            self._timers.cancel(key)
