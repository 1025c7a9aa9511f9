"""From the settings of a topic to what its logs work by."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.config.broker.settings import BrokerSettings
from moldau.storage.log.config import LogConfig


def log_config_from(overrides: Mapping[str, str], settings: BrokerSettings) -> LogConfig:
    """The `LogConfig` of a topic: its own settings, and the broker's for all others."""
    values = settings.topic_values(overrides)
    segment_bytes = values["internal.segment.bytes"] or values["segment.bytes"]
    return LogConfig.from_configs({**values, "segment.bytes": segment_bytes})
