"""The configs of the group coordinator as typed properties, and the configs of single groups.

`GroupSettings` reads the current broker config, so dynamic updates apply immediately. The configs of a group
(config resource GROUP) are limited by those of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.config.broker.config import BrokerConfig
from moldau.config.group import GROUP_CONFIG_SYNONYMS, GROUP_CONFIGS, GROUP_LIMITS
from moldau.metadata.image import ConfigResource, MetadataImage, ResourceType

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class GroupSettings:
    config: BrokerConfig
    #: The session timeout of members that have not completed a rebalance yet.
    new_member_join_timeout_ms: int = 5 * _MINUTE_MS

    @classmethod
    def from_config(cls, config: BrokerConfig) -> GroupSettings:
        return cls(config)

    # Classic groups.

    @property
    def initial_rebalance_delay_ms(self) -> int:
        return self.config.integer("group.initial.rebalance.delay.ms")

    @property
    def min_session_timeout_ms(self) -> int:
        return self.config.integer("group.min.session.timeout.ms")

    @property
    def max_session_timeout_ms(self) -> int:
        return self.config.integer("group.max.session.timeout.ms")

    @property
    def max_size(self) -> int:
        return self.config.integer("group.max.size")

    # Offsets.

    @property
    def offset_metadata_max_bytes(self) -> int:
        return self.config.integer("offset.metadata.max.bytes")

    @property
    def offsets_retention_ms(self) -> int:
        return self.config.integer("offsets.retention.minutes") * _MINUTE_MS

    @property
    def offsets_retention_check_interval_ms(self) -> int:
        return self.config.integer("offsets.retention.check.interval.ms")

    # Consumer groups.

    @property
    def consumer_max_size(self) -> int:
        return self.config.integer("group.consumer.max.size")

    @property
    def consumer_migration_policy(self) -> str:
        return self.config.text("group.consumer.migration.policy") or "disabled"

    @property
    def consumer_regex_refresh_interval_ms(self) -> int:
        return self.config.integer("group.consumer.regex.refresh.interval.ms")

    # Share groups.

    @property
    def share_max_size(self) -> int:
        return self.config.integer("group.share.max.size")

    @property
    def share_initialize_retry_ms(self) -> int:
        return self.config.integer("group.share.initialize.retry.interval.ms")

    # Streams groups.

    @property
    def streams_max_size(self) -> int:
        return self.config.integer("group.streams.max.size")

    # Single groups.

    def of_group(self, image: MetadataImage, group_id: str, name: str) -> int:
        """Return the config of a group within the broker's limits; by default the broker's synonym."""
        configs: Mapping[str, str] = image.configs.get(ConfigResource(ResourceType.GROUP, group_id), {})
        if name not in configs:
            return self.config.integer(GROUP_CONFIG_SYNONYMS[name])
        value = GROUP_CONFIGS[name].parse(configs[name])
        number = int(value) if isinstance(value, int | float) else 0
        lowest, highest = GROUP_LIMITS.get(name, (None, None))
        if lowest is not None:
            number = max(number, self.config.integer(lowest))
        return number if highest is None else min(number, self.config.integer(highest))

    def consumer_session_timeout_ms(self, image: MetadataImage, group_id: str) -> int:
        return self.of_group(image, group_id, "consumer.session.timeout.ms")

    def consumer_heartbeat_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self.of_group(image, group_id, "consumer.heartbeat.interval.ms")

    def consumer_assignment_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self.of_group(image, group_id, "consumer.assignment.interval.ms")
