"""The configs of the metadata topic are validated before anything is written to it."""

from __future__ import annotations

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.server.tiered.settings import TieredSettings

_PREFIX = "rlmm.config.remote.log.metadata."


def settings(**more: str) -> TieredSettings:
    config = BrokerConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": "PLAINTEXT://localhost:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            **{_PREFIX + name.replace("_", "."): value for name, value in more.items()},
        }
    )
    return TieredSettings(lambda: config)


def test_defaults_are_those_of_apache_kafka() -> None:
    found = settings()
    assert (found.metadata_partitions, found.metadata_replication_factor) == (50, 3)
    assert (found.metadata_retention_ms, found.metadata_min_isr, found.publish_timeout_ms) == (-1, 2, 120_000)
    assert settings(topic_num_partitions=" 7 ").metadata_partitions == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic_num_partitions", "abc"),
        ("topic_num_partitions", "0"),
        ("topic_replication_factor", "-1"),
        ("topic_replication_factor", "40000"),
        ("topic_retention_ms", "-2"),
        ("topic_min_isr", "0"),
        ("consume_wait_ms", "1.5"),
    ],
)
def test_an_invalid_config_is_named(name: str, value: str) -> None:
    full = (_PREFIX + name.replace("_", ".")).replace(".", r"\.")
    with pytest.raises(ConfigError, match=f"{full}.*|{value}.*{full}"):
        settings(**{name: value})
