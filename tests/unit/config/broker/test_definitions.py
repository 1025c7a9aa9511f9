"""The config tables; `tests/interop` compares them with Kafka's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.config.broker.definitions import (
    BROKER_CONFIGS,
    CHANGEABLE,
    DYNAMIC_BROKER_CONFIGS,
    PER_BROKER_ONLY,
)
from moldau.config.client_metrics import CLIENT_METRICS_CONFIGS
from moldau.config.definition import ConfigKey, Required
from moldau.config.group import GROUP_CONFIG_SYNONYMS, GROUP_CONFIGS, GROUP_LIMITS
from moldau.config.topic import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS

TABLES = (BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS, TOPIC_CONFIGS, GROUP_CONFIGS, CLIENT_METRICS_CONFIGS)
KEYS = [key for table in TABLES for key in table.values()]


def test_number_of_configs_is_that_of_kafka() -> None:
    public = [key for key in BROKER_CONFIGS.values() if not key.internal and not is_confluents(key)]
    topic = [key for key in TOPIC_CONFIGS.values() if not is_confluents(key)]
    assert (len(public), len(topic), len(GROUP_CONFIGS), len(CLIENT_METRICS_CONFIGS)) == (
        340,
        34,
        17,
        3,
    )


def is_confluents(key: ConfigKey) -> bool:
    return key.name.startswith("confluent.")


def test_confluents_configs_are_those_of_schema_validation() -> None:
    assert [
        key.name for key in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()) if is_confluents(key)
    ] == [
        "confluent.basic.auth.credentials.source",
        "confluent.basic.auth.user.info",
        "confluent.missing.id.cache.ttl.sec",
        "confluent.schema.registry.max.cache.size",
        "confluent.schema.registry.max.retries",
        "confluent.schema.registry.retries.wait.ms",
        "confluent.schema.registry.url",
        "confluent.key.schema.validation",
        "confluent.key.subject.name.strategy",
        "confluent.value.schema.validation",
        "confluent.value.subject.name.strategy",
    ]


def test_names_are_unique() -> None:
    from moldau.config.broker.definitions import (
        groups,
        log,
        network,
        node,
        observability,
        remote_log,
        replication,
        sasl,
        schema_validation,
        security,
        share_groups,
        transactions,
    )

    themes = (
        groups,
        log,
        network,
        node,
        observability,
        remote_log,
        replication,
        sasl,
        schema_validation,
        security,
        share_groups,
        transactions,
    )
    assert sum(len(theme.CONFIGS) for theme in themes) == len(BROKER_CONFIGS)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_defaults_are_allowed_and_readable(key: ConfigKey) -> None:
    if isinstance(key.default, Required) or key.default is None:
        return
    text = key.default_text
    assert text is not None
    assert key.parse(text) == key.default


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_documentation_is_a_sentence(key: ConfigKey) -> None:
    assert key.documentation[0].isupper()
    assert key.documentation.endswith(".")
    assert "  " not in key.documentation
    assert len(key.documentation) < 300


def test_synonyms_exist() -> None:
    assert TOPIC_CONFIG_SYNONYMS.keys() <= TOPIC_CONFIGS.keys()
    assert {
        synonym.name for names in TOPIC_CONFIG_SYNONYMS.values() for synonym in names
    } <= BROKER_CONFIGS.keys()
    assert set(GROUP_CONFIG_SYNONYMS.values()) <= BROKER_CONFIGS.keys()
    assert {name for pair in GROUP_LIMITS.values() for name in pair if name} <= BROKER_CONFIGS.keys()


def test_broker_defaults_of_topic_configs_are_dynamic() -> None:
    assert {names[0].name for names in TOPIC_CONFIG_SYNONYMS.values()} <= CHANGEABLE
    assert PER_BROKER_ONLY <= CHANGEABLE


def test_config_imports_neither_dataclasses_nor_asyncio() -> None:
    code = "import sys, moldau.config.broker.config; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"asyncio", "dataclasses", "inspect", "ipaddress", "socket"} & set(modules)
