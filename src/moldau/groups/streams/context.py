"""The common dependencies of the streams protocol's classes within one shard: configs and timers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.groups.context import GroupContext
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.groups.registry import GroupRegistry
from moldau.groups.streams.member import StreamsMember
from moldau.groups.timer_keys import initial_rebalance_key, rebalance_timeout_key, session_timeout_key
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


@dataclass(slots=True)
class StreamsContext:
    group_context: GroupContext
    registry: GroupRegistry
    #: Removes a member; arguments: group id, member id, reason, and the epoch it must still have (None: any).
    fence: Callable[[str, str, str, int | None], Decision[Entry, Any]]
    #: Computes the first target assignment of a group.
    assign: Callable[[str], Decision[Entry, Any]]
    hashes: SubscriptionHashes = field(default_factory=SubscriptionHashes)

    # Configs.

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._group_config(group_id, "streams.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._group_config(group_id, "streams.assignment.interval.ms")

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        return self._group_config(group_id, "streams.initial.rebalance.delay.ms")

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the configs of the assignor, which are stored with the group epoch."""
        replicas = self._group_config(group_id, "streams.num.standby.replicas")
        return {"num.standby.replicas": str(replicas)}

    def _group_config(self, group_id: str, name: str) -> int:
        return self.group_context.settings().of_group(self.group_context.image, group_id, name)

    # Timers.

    def restart_session(self, group_id: str, member_id: str) -> None:
        """Restart the session timeout of a member that has sent a request."""
        self.group_context.timers.schedule(
            session_timeout_key(group_id, member_id),
            self._group_config(group_id, "streams.session.timeout.ms"),
            lambda: self.fence(group_id, member_id, "its session has expired", None),
        )

    def schedule_rebalance_timeout(self, group_id: str, member: StreamsMember) -> None:
        """Limit the time in which a member must revoke tasks."""
        member_id, epoch, timeout_ms = member.member_id, member.member_epoch, member.rebalance_timeout_ms
        reason = f"it has not left epoch {epoch} within {timeout_ms} ms"
        self.group_context.timers.schedule(
            rebalance_timeout_key(group_id, member_id),
            timeout_ms,
            lambda: self.fence(group_id, member_id, reason, epoch),
        )

    def cancel_rebalance_timeout(self, group_id: str, member_id: str) -> None:
        self.group_context.timers.cancel(rebalance_timeout_key(group_id, member_id))

    def cancel_member_timers(self, group_id: str, member_id: str) -> None:
        self.group_context.timers.cancel(session_timeout_key(group_id, member_id))
        self.cancel_rebalance_timeout(group_id, member_id)

    def delays_assignment(self, group_id: str) -> bool:
        """Return whether a new group still waits for members before its first assignment."""
        return self.group_context.timers.is_scheduled(initial_rebalance_key(group_id))

    def schedule_first_assignment(self, group_id: str, delay_ms: int) -> None:
        key = initial_rebalance_key(group_id)
        if not self.group_context.timers.is_scheduled(key):
            self.group_context.timers.schedule(key, delay_ms, lambda: self.assign(group_id))
