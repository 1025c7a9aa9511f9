"""What the parts of the share protocol have in common within one shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.groups.consumer.timer_keys import session_key
from moldau.groups.context import GroupContext
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.groups.registry import GroupRegistry
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


@dataclass(slots=True)
class ShareParts:
    context: GroupContext
    registry: GroupRegistry
    #: Removes a member that was not heard from in time.
    fence: Callable[[str, str], Decision[Entry, Any]]
    hashes: SubscriptionHashes = field(default_factory=SubscriptionHashes)

    def heard_from(self, group_id: str, member_id: str) -> None:
        """The member lives: its session begins anew."""
        self.context.timers.schedule(
            session_key(group_id, member_id),
            self._of_group(group_id, "share.session.timeout.ms"),
            lambda: self.fence(group_id, member_id),
        )

    def forget(self, group_id: str, member_id: str) -> None:
        self.context.timers.cancel(session_key(group_id, member_id))

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "share.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "share.assignment.interval.ms")

    def _of_group(self, group_id: str, name: str) -> int:
        return self.context.settings().of_group(self.context.image, group_id, name)
