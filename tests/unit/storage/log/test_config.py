"""The log config of a topic, from the topic and broker configs."""

from __future__ import annotations

from moldau.storage.log.config import LogConfig, log_config_from
from tests.unit.config.node_properties import config


def test_topic_without_configs_has_kafkas_defaults() -> None:
    assert log_config_from({}, config()) == LogConfig()


def test_topic_config_overrides_the_broker_config() -> None:
    broker = config(log_retention_hours="1", log_cleanup_policy="compact", log_segment_bytes="2000000")
    log = log_config_from({"segment.bytes": "3000000", "min.cleanable.dirty.ratio": "0.25"}, broker)
    assert (log.retention_ms, log.cleanup_policy, log.segment_bytes) == (
        3_600_000,
        frozenset({"compact"}),
        3_000_000,
    )
    assert log.min_cleanable_dirty_ratio == 0.25


def test_internal_segment_bytes_overrides_the_minimum() -> None:
    assert log_config_from({"internal.segment.bytes": "100"}, config()).segment_bytes == 100
