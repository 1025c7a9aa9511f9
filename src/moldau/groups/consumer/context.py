"""The common dependencies of the consumer protocol's classes within one shard."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.groups.assignors import ASSIGNORS, CLASS_NAMES
from moldau.groups.consumer.timers import ConsumerTimers
from moldau.groups.context import GroupContext
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.groups.registry import GroupRegistry
from moldau.groups.settings import GroupSettings


@dataclass(slots=True)
class ConsumerContext:
    group_context: GroupContext
    registry: GroupRegistry
    timers: ConsumerTimers
    hashes: SubscriptionHashes = field(default_factory=SubscriptionHashes)
    #: The offset of the last metadata image that created topics.
    last_topics_offset: int = -1

    @property
    def assignors(self) -> list[str]:
        return enabled_assignors(self.group_context.settings())

    def session_timeout_ms(self, group_id: str) -> int:
        context = self.group_context
        return context.settings().consumer_session_timeout_ms(context.image, group_id)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        context = self.group_context
        return context.settings().consumer_heartbeat_interval_ms(context.image, group_id)

    def assignment_interval_ms(self, group_id: str) -> int:
        context = self.group_context
        return context.settings().consumer_assignment_interval_ms(context.image, group_id)


def enabled_assignors(settings: GroupSettings) -> list[str]:
    """Return the assignors of `group.consumer.assignors`; the first is the default."""
    configured = settings.config["group.consumer.assignors"]
    names = (
        [CLASS_NAMES.get(name, name) for name in configured] if isinstance(configured, tuple | list) else []
    )
    return [name for name in names if name in ASSIGNORS] or list(ASSIGNORS)
