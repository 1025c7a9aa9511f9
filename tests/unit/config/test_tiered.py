"""Rules between the topic configs of tiered storage."""

from __future__ import annotations

import pytest

from moldau.config.broker.settings import BrokerSettings
from moldau.config.definition import ConfigError
from moldau.config.tiered import check_tiered_topic, refuse_tiered_topics

_BROKER = BrokerSettings({"node.id": "1", "process.roles": "broker", "controller.listener.names": "C"})
_ON = {"remote.storage.enable": "true"}


def check(configs: dict[str, str], existing: dict[str, str] | None = None, *, enabled: bool = True) -> None:
    check_tiered_topic(_BROKER.topic_values(configs), existing or {}, system_enabled=enabled)


@pytest.mark.parametrize(
    "configs",
    [
        {},
        _ON,
        _ON | {"cleanup.policy": ""},
        _ON | {"retention.ms": "-1", "local.retention.ms": "1000"},
        _ON | {"retention.ms": "5000", "local.retention.ms": "5000"},
        _ON | {"remote.log.copy.disable": "true", "retention.ms": "5", "local.retention.ms": "5"},
    ],
)
def test_allowed(configs: dict[str, str]) -> None:
    check(configs)


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (_ON | {"cleanup.policy": "compact"}, "cleanup.policy=delete"),
        (_ON | {"cleanup.policy": "compact,delete"}, "cleanup.policy=delete"),
        (_ON | {"retention.ms": "5", "local.retention.ms": "6"}, "must not be more than retention.ms"),
        (_ON | {"retention.bytes": "5", "local.retention.bytes": "-1"}, "must not be -1 as retention.bytes"),
        (
            _ON | {"remote.log.copy.disable": "true", "retention.bytes": "5", "local.retention.bytes": "4"},
            "must be set to the identical value",
        ),
    ],
)
def test_refused(configs: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check(configs)


def test_the_cluster_must_have_tiered_storage() -> None:
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled"):
        check(_ON, enabled=False)


def test_disabling_requires_deleting() -> None:
    with pytest.raises(ConfigError, match="without deleting remote data"):
        check({"remote.storage.enable": "false"}, existing=_ON)
    check({"remote.log.delete.on.disable": "true"}, existing=_ON)


def test_tiered_topics_need_tiered_storage() -> None:
    refuse_tiered_topics([("a", {}), ("b", {"remote.storage.enable": "false"})])
    with pytest.raises(ConfigError, match="b is one of them"):
        refuse_tiered_topics([("a", {}), ("b", _ON)])
