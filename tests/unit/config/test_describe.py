"""DescribeConfigs responses; `tests/interop` compares every entry with Apache Kafka's."""

from __future__ import annotations

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigSource, ConfigType
from moldau.config.describe import (
    ConfigEntryDescription,
    ConfigSynonym,
    describe_broker_configs,
    describe_broker_defaults,
    describe_client_metrics_configs,
    describe_group_configs,
    describe_topic_configs,
)
from tests.unit.config.node_properties import NODE, config

TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
BROKER = ConfigSource.DYNAMIC_BROKER_CONFIG
CLUSTER = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG


def only(entries: list[ConfigEntryDescription]) -> ConfigEntryDescription:
    (entry,) = entries
    return entry


def test_topic_config_lists_its_synonyms_of_every_level() -> None:
    read = config(message_max_bytes="10").with_dynamic(
        {"message.max.bytes": "20"}, {"message.max.bytes": "30"}
    )
    entry = only(describe_topic_configs({"max.message.bytes": " 40 "}, read, ["max.message.bytes"]))
    assert (entry.value, entry.source, entry.type, entry.read_only) == ("40", TOPIC, ConfigType.INT, False)
    assert entry.documentation
    assert entry.synonyms == (
        ConfigSynonym("max.message.bytes", "40", TOPIC),
        ConfigSynonym("message.max.bytes", "30", BROKER),
        ConfigSynonym("message.max.bytes", "20", CLUSTER),
        ConfigSynonym("message.max.bytes", "10", STATIC),
        ConfigSynonym("message.max.bytes", "1048588", DEFAULT),
    )


def test_unset_synonym_in_another_unit_is_not_listed() -> None:
    entry = only(describe_topic_configs({}, config(log_retention_hours="1"), ["retention.ms"]))
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", DEFAULT, ())


def test_synonym_in_another_unit_is_listed_last() -> None:
    read = config(log_roll_ms="5", log_roll_hours="2")
    assert only(describe_topic_configs({}, read, ["segment.ms"])).synonyms == (
        ConfigSynonym("log.roll.ms", "5", STATIC),
        ConfigSynonym("log.roll.hours", "2", STATIC),
        ConfigSynonym("log.roll.hours", "168", DEFAULT),
    )


def test_internal_and_unknown_topic_configs_are_listed_only_when_set() -> None:
    names = {entry.name for entry in describe_topic_configs({}, config())}
    assert len(names) == 33
    assert "internal.segment.bytes" not in names
    # Not a config of Apache Kafka, so its users do not see it unless it is set.
    validation = "confluent.value.schema.validation"
    assert validation not in names
    assert only(describe_topic_configs({validation: "true"}, config(), [validation])).value == "true"
    old = only(
        describe_topic_configs({"message.format.version": "2.8"}, config(), ["message.format.version"])
    )
    assert (old.value, old.is_sensitive, old.type, old.source) == (None, True, ConfigType.UNKNOWN, TOPIC)


def test_broker_configs_show_which_are_read_only() -> None:
    entries = {entry.name: entry for entry in describe_broker_configs(config())}
    assert not entries["message.max.bytes"].read_only
    assert entries["num.partitions"].read_only
    assert entries["node.id"].synonyms == (ConfigSynonym("node.id", "1", STATIC),)
    assert entries["broker.rack"].value is None
    assert "log.initial.task.delay.ms" not in entries


def test_passwords_are_not_returned() -> None:
    read = BrokerConfig(
        NODE | {"ssl.key.password": "hush", "my.own": "hush", "listener.name.a.ssl.key.password": "hush"}
    )
    secrets = ["ssl.key.password", "my.own", "listener.name.a.ssl.key.password"]
    for entry in describe_broker_configs(read, secrets):
        assert entry.is_sensitive
        assert "hush" not in repr(entry)
        assert entry.synonyms[0] == ConfigSynonym(entry.name, None, STATIC)


def test_listener_config_falls_back_to_the_config_without_prefix() -> None:
    read = BrokerConfig(NODE | {"listener.name.plaintext.max.connections": "7", "max.connections": "9"})
    entry = only(describe_broker_configs(read, ["listener.name.plaintext.max.connections"]))
    assert (entry.type, entry.documentation, entry.read_only) == (ConfigType.INT, None, True)
    assert [synonym.value for synonym in entry.synonyms] == ["7", "9", "2147483647"]
    assert [
        synonym.value for synonym in only(describe_broker_configs(read, ["max.connections"])).synonyms
    ] == [
        "9",
        "2147483647",
    ]


def test_cluster_defaults_list_only_set_configs() -> None:
    read = config(message_max_bytes="10").with_dynamic({"log.cleanup.policy": "compact, delete"}, {})
    entry = only(describe_broker_defaults(read))
    assert entry.value == "compact, delete"
    assert entry.synonyms == (ConfigSynonym("log.cleanup.policy", "compact, delete", CLUSTER),)
    assert describe_broker_defaults(read, ["message.max.bytes"]) == []


def test_group_configs_inherit_broker_configs() -> None:
    read = config(group_consumer_session_timeout_ms="46000")
    entries = {
        entry.name: entry
        for entry in describe_group_configs({"share.isolation.level": "read_committed"}, read)
    }
    assert entries["consumer.session.timeout.ms"].source is STATIC
    assert entries["consumer.session.timeout.ms"].value == "46000"
    assert entries["share.auto.offset.reset"].synonyms == (
        ConfigSynonym("share.auto.offset.reset", "latest", DEFAULT),
    )
    assert entries["share.isolation.level"].synonyms == (
        ConfigSynonym("share.isolation.level", "read_committed", ConfigSource.DYNAMIC_GROUP_CONFIG),
        ConfigSynonym("share.isolation.level", "read_uncommitted", DEFAULT),
    )


def test_client_metrics_configs_are_described() -> None:
    entries = {entry.name: entry for entry in describe_client_metrics_configs({"metrics": "a,a,b"})}
    assert entries["metrics"].value == "a,b"
    assert entries["metrics"].source is ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    assert (entries["interval.ms"].value, entries["interval.ms"].synonyms) == ("300000", ())
