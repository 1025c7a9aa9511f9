"""What the parts of the consumer protocol share within one shard."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.groups.assignors import ASSIGNORS, CLASS_NAMES
from moldau.groups.consumer.timers import ConsumerTimers
from moldau.groups.context import GroupContext
from moldau.groups.modern.subscription_hash import SubscriptionHashes
from moldau.groups.registry import GroupRegistry
from moldau.groups.settings import GroupSettings


@dataclass(slots=True)
class ConsumerParts:
    context: GroupContext
    registry: GroupRegistry
    timers: ConsumerTimers
    hashes: SubscriptionHashes = field(default_factory=SubscriptionHashes)
    #: The offset of the newest metadata that brought topics, as far as this shard has seen.
    newest_topics_offset: int = -1

    @property
    def assignors(self) -> list[str]:
        return offered_assignors(self.context.settings())

    def session_timeout_ms(self, group_id: str) -> int:
        return self.context.settings().consumer_session_timeout_ms(self.context.image, group_id)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.context.settings().consumer_heartbeat_interval_ms(self.context.image, group_id)

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.context.settings().consumer_assignment_interval_ms(self.context.image, group_id)


def offered_assignors(settings: GroupSettings) -> list[str]:
    """Those `group.consumer.assignors` offers; the first is the default."""
    named = settings.config["group.consumer.assignors"]
    offered = [CLASS_NAMES.get(name, name) for name in named] if isinstance(named, tuple | list) else []
    return [name for name in offered if name in ASSIGNORS] or list(ASSIGNORS)
