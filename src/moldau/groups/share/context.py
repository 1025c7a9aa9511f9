"""The common dependencies of the share protocol's classes within one shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.groups.context import GroupContext
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.groups.registry import GroupRegistry
from moldau.groups.timer_keys import session_timeout_key
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


@dataclass(slots=True)
class ShareContext:
    group_context: GroupContext
    registry: GroupRegistry
    #: Removes a member whose session has expired.
    fence: Callable[[str, str], Decision[Entry, Any]]
    hashes: SubscriptionHashes = field(default_factory=SubscriptionHashes)

    def restart_session(self, group_id: str, member_id: str) -> None:
        """Restart the session timeout of a member that has sent a request."""
        self.group_context.timers.schedule(
            session_timeout_key(group_id, member_id),
            self._group_config(group_id, "share.session.timeout.ms"),
            lambda: self.fence(group_id, member_id),
        )

    def cancel_session(self, group_id: str, member_id: str) -> None:
        self.group_context.timers.cancel(session_timeout_key(group_id, member_id))

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._group_config(group_id, "share.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._group_config(group_id, "share.assignment.interval.ms")

    def _group_config(self, group_id: str, name: str) -> int:
        return self.group_context.settings().of_group(self.group_context.image, group_id, name)
