"""The timeouts of consumer group members. An expired timeout fences the member: it is removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.timer_keys import (
    consumer_join_key,
    consumer_member_keys,
    consumer_sync_key,
    rebalance_timeout_key,
    session_timeout_key,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.timers import Timers

#: Arguments: group id, member id, reason, and the epoch that the member must still have (None: any).
Fence = Callable[[str, str, str, int | None], Decision[Entry, Any]]


class ConsumerTimers:
    def __init__(self, timers: Timers, fence: Fence) -> None:
        self._timers = timers
        self._fence = fence

    def restart_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Restart the session timeout of a member that has sent a request."""
        self._timers.schedule(
            session_timeout_key(group_id, member_id),
            timeout_ms,
            lambda: self._fence(group_id, member_id, "its session has expired", None),
        )

    def schedule_rebalance_timeout(self, group_id: str, member: ConsumerMember) -> None:
        """Limit the time in which a member must revoke partitions."""
        member_id, epoch, timeout_ms = member.member_id, member.member_epoch, member.rebalance_timeout_ms
        reason = f"it has not left epoch {epoch} within {timeout_ms} ms"
        self._timers.schedule(
            rebalance_timeout_key(group_id, member_id),
            timeout_ms,
            lambda: self._fence(group_id, member_id, reason, epoch),
        )

    def cancel_rebalance_timeout(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(rebalance_timeout_key(group_id, member_id))

    def schedule_join_timeout(self, group_id: str, member: ConsumerMember) -> None:
        """Limit the time in which a classic member must rejoin, counted from the first request to do so."""
        key, member_id = consumer_join_key(group_id, member.member_id), member.member_id
        if not self._timers.is_scheduled(key):
            reason = "it has not rejoined within its rebalance timeout"
            self._timers.schedule(
                key, member.rebalance_timeout_ms, lambda: self._fence(group_id, member_id, reason, None)
            )

    def cancel_join_timeout(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(consumer_join_key(group_id, member_id))

    def schedule_sync_timeout(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        reason = "it has not sent SyncGroup within its rebalance timeout"
        self._timers.schedule(
            consumer_sync_key(group_id, member_id),
            timeout_ms,
            lambda: self._fence(group_id, member_id, reason, None),
        )

    def cancel_sync_timeout(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(consumer_sync_key(group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        for key in consumer_member_keys(group_id, member_id):
            self._timers.cancel(key)
