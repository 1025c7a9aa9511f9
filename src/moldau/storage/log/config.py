"""The topic configs that storage uses, as typed values.

One frozen `LogConfig` is shared by all partitions of a topic; a changed config is a new object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.config.broker.settings import BrokerSettings

MAX_LONG = 2**63 - 1
#: `local.retention.*` follows `retention.*`.
_AS_WHOLE = -2
_TOPIC_NAME_STRATEGY = "io.confluent.kafka.serializers.subject.TopicNameStrategy"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Kafka's topic configs and their defaults, with underscores for dots."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: frozenset[str] = field(default_factory=lambda: frozenset({"delete"}))
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = 3_600_000
    max_message_bytes: int = 1_048_588
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False
    min_insync_replicas: int = 1
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = _TOPIC_NAME_STRATEGY
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = _TOPIC_NAME_STRATEGY

    @property
    def validates_schemas(self) -> bool:
        return self.confluent_key_schema_validation or self.confluent_value_schema_validation

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def tiered(self) -> bool:
        """Whether closed segments may be in the remote tier (KIP-405); never those of a compacted topic."""
        return self.remote_storage_enable and not self.compact

    @property
    def copies_to_remote(self) -> bool:
        """Whether local segments are deleted by the local retention, once they are in the remote tier."""
        return self.tiered and not self.remote_log_copy_disable

    @property
    def effective_local_retention_ms(self) -> int:
        return _unless_followed(self.local_retention_ms, self.retention_ms)

    @property
    def effective_local_retention_bytes(self) -> int:
        return _unless_followed(self.local_retention_bytes, self.retention_bytes)

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled; only closed segments are compacted."""
        if self.max_compaction_lag_ms > 0 and self.compact:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @classmethod
    def from_configs(cls, configs: Mapping[str, Any]) -> LogConfig:
        """Build from topic configs by Kafka's names, typed or as text; other names are ignored."""
        return cls().with_configs(configs)

    def with_configs(self, configs: Mapping[str, Any]) -> LogConfig:
        """Return a copy with some values changed."""
        changes: dict[str, Any] = {}
        for item in fields(self):
            value = configs.get(item.name.replace("_", "."))
            if value is not None:
                changes[item.name] = _convert(str(item.type), value)
        return replace(self, **changes)


def _unless_followed(local: int, whole: int) -> int:
    """Return the local limit, or the whole one if the local one is -2."""
    return whole if local == _AS_WHOLE else local


def _convert(kind: str, value: Any) -> Any:
    if kind == "int":
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "bool":
        return value if isinstance(value, bool) else str(value).strip().lower() == "true"
    if kind == "str":
        return str(value)
    names = value.split(",") if isinstance(value, str) else value
    return frozenset(name.strip() for name in names if name.strip())


def log_config_from(overrides: Mapping[str, str], settings: BrokerSettings) -> LogConfig:
    """The `LogConfig` of a topic: its own configs, and the broker's for all others."""
    values = settings.topic_values(overrides)
    segment_bytes = values["internal.segment.bytes"] or values["segment.bytes"]
    tiered = values["remote.storage.enable"] and settings["remote.log.storage.system.enable"]
    return LogConfig.from_configs({**values, "segment.bytes": segment_bytes, "remote.storage.enable": tiered})
