"""Dynamic configs: which configs may change at which level, and to which values."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.config import BrokerConfig
from moldau.config.client_metrics import parse_match_patterns, validate_client_metrics_configs
from moldau.config.definition import ConfigError
from moldau.config.dynamic import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    Operation,
    apply_dynamic_configs,
    broker_configs_after,
    validate_broker_configs,
    validate_topic_configs,
)
from moldau.config.group import validate_group_configs
from tests.unit.config.node_properties import NODE, config


def test_config_source_takes_precedence_over_synonym_order() -> None:
    read = config(log_retention_hours="1", log_retention_minutes="2", message_max_bytes="10")
    changed = read.with_dynamic(
        {"log.retention.ms": "3", "message.max.bytes": "20"}, {"message.max.bytes": "30"}
    )
    assert changed["log.retention.hours"] == 168
    assert changed["log.retention.minutes"] is None
    assert changed.topic_default_values["retention.ms"] == 3
    assert changed["message.max.bytes"] == 30
    assert read["message.max.bytes"] == 10


@pytest.mark.parametrize("per_broker", [True, False])
@pytest.mark.parametrize(
    "changed",
    [
        {"message.max.bytes": "5"},
        {"background.threads": "20"},
        {"background.threads": "5"},
        {"listener.name.plaintext.max.connections": "5"},
        {"follower.replication.throttled.rate": "5"},
        {"unknown.config": "this"},
        {"log.cleanup.policy": ""},
    ],
    ids=str,
)
def test_valid_broker_config_changes_are_accepted(changed: dict[str, str], per_broker: bool) -> None:
    validate_broker_configs(config(), changed, per_broker=per_broker)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"message.max.bytes": "x"},
            "Invalid value x for configuration message.max.bytes: Not a number of type INT",
        ),
        (
            {"listener.name.a.max.connections": "x"},
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"num.partitions": "3", "log.retention.hours": "1"},
            "Cannot update these configs dynamically: [log.retention.hours, num.partitions]",
        ),
        (
            {"ssl.keystore.location": "/x"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            {"num.io.threads": "100"},
            "Dynamic thread count update validation failed for num.io.threads=100, value should not be "
            "greater than double the current value 8",
        ),
        (
            {"num.io.threads": "3"},
            "Dynamic thread count update validation failed for num.io.threads=3, value should be at "
            "least half the current value 8",
        ),
        (
            {"log.cleaner.threads": "3"},
            "Log cleaner threads cannot be increased to more than double the current value 1",
        ),
        (
            {"log.local.retention.ms": "999999999999"},
            "Invalid value 999999999999 for configuration log.local.retention.ms: Value must not be more "
            "than log.retention.ms property value: 604800000",
        ),
        (
            {"log.local.retention.ms": "-1"},
            "Invalid value -1 for configuration log.local.retention.ms: Value must not be -1 as "
            "log.retention.ms value is set as 604800000.",
        ),
        (
            {"listener.name.x.plain.sasl.jaas.config": "x", "listener.name.x.ssl.client.auth": "none"},
            "Configs cannot be updated dynamically for existing listener, change the file and restart the "
            "broker: [listener.name.x.plain.sasl.jaas.config, listener.name.x.ssl.client.auth]",
        ),
        (
            {"principal.builder.class": "x.Y"},
            "principal.builder.class=x.Y names a Java class, which Moldau cannot run; remove the setting to "
            "use the names of users as they log in, or use ssl.principal.mapping.rules and "
            "sasl.kerberos.principal.to.local.rules.",
        ),
        ({"metric.reporters": "x.Y"}, "metric.reporters has x.Y, which Moldau does not load."),
    ],
    ids=str,
)
def test_invalid_broker_config_changes_are_refused(changed: dict[str, str], sentence: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate_broker_configs(config(), changed, per_broker=True)
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_REQUEST, sentence)


@pytest.mark.parametrize(
    "name", ["listeners", "listener.name.x.ssl.keystore.location", "sasl.enabled.mechanisms"]
)
def test_per_broker_configs_are_refused_as_cluster_defaults(name: str) -> None:
    value = NODE["listeners"] if name == "listeners" else "x"
    validate_broker_configs(config(), {name: value}, per_broker=True)
    with pytest.raises(KafkaError, match="broker id must be specified"):
        validate_broker_configs(config(), {name: value}, per_broker=False)


def test_listeners_cannot_change_while_the_broker_runs() -> None:
    with pytest.raises(KafkaError, match="listeners cannot be changed while it runs"):
        validate_broker_configs(config(), {"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, per_broker=True)


def test_incremental_operations() -> None:
    existing = {"log.cleanup.policy": "compact", "message.max.bytes": "1"}
    changed = broker_configs_after(
        existing,
        [
            Operation("log.cleanup.policy", APPEND, "delete,compact"),
            Operation("message.max.bytes", DELETE, None),
            Operation("background.threads", SET, "20"),
            Operation("ssl.enabled.protocols", SUBTRACT, "TLSv1.2"),
        ],
    )
    assert changed == {
        "log.cleanup.policy": "compact,delete",
        "background.threads": "20",
        "ssl.enabled.protocols": "TLSv1.3",
    }
    assert existing["message.max.bytes"] == "1"


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        (APPEND, "message.max.bytes", "Config value append is not allowed for config key: message.max.bytes"),
        (
            SUBTRACT,
            "message.max.bytes",
            "Config value subtract is not allowed for config key: message.max.bytes",
        ),
        (APPEND, "unknown.config", "Unknown config name: unknown.config"),
    ],
)
def test_append_and_subtract_are_refused_for_scalar_configs(kind: int, name: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        broker_configs_after({}, [Operation(name, kind, "1")])
    assert refusal.value.sentence == sentence


def test_invalid_dynamic_configs_are_ignored_with_a_warning() -> None:
    stored = {"message.max.bytes": "x", "num.partitions": "3", "background.threads": "20", "listeners": "y"}
    applied = apply_dynamic_configs(config(), stored, {"log.retention.ms": "5"})
    assert applied.config["background.threads"] == 20
    assert applied.config["message.max.bytes"] == 1_048_588
    assert applied.config.topic_default_values["retention.ms"] == 5
    assert [problem.split(" is ignored")[0] for problem in applied.problems] == [
        "The dynamic config message.max.bytes",
        "The dynamic config num.partitions",
        "The dynamic config listeners",
    ]


def test_stored_configs_without_effect_do_not_stop_other_changes() -> None:
    """Apache Kafka stores them."""
    stored = {"listener.name.x.plain.sasl.jaas.config": "x", "listener.name.x.ssl.client.auth": "none"}
    applied = apply_dynamic_configs(config(), {}, stored | {"listener.name.x.max.connections": "5"})
    assert applied.config.dynamic_broker == {"listener.name.x.max.connections": "5"}
    assert len(applied.problems) == 2
    validate_broker_configs(config(), stored | {"background.threads": "20"}, per_broker=True, stored=stored)


def test_contradicting_dynamic_configs_are_not_applied() -> None:
    before = config()
    applied = apply_dynamic_configs(before, {"max.connections.per.ip": "0"}, {})
    assert applied.config is before
    assert applied.problems[0].startswith("The dynamic configs contradict each other")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        (
            {"segment.bytes": "100"},
            "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
            "remote log storage.",
        ),
        (
            {"confluent.value.schema.validation": "true"},
            "Invalid value true for configuration confluent.value.schema.validation: Schema validation needs "
            "a schema registry; set confluent.schema.registry.url on all nodes",
        ),
        (
            {"confluent.key.subject.name.strategy": "x.OtherStrategy"},
            "Invalid value x.OtherStrategy for configuration confluent.key.subject.name.strategy: String "
            "must be one of: io.confluent.kafka.serializers.subject.TopicNameStrategy, "
            "io.confluent.kafka.serializers.subject.RecordNameStrategy, "
            "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
        ),
    ],
    ids=str,
)
def test_invalid_topic_config_changes_are_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        validate_topic_configs(overrides, config())
    assert refusal.value.sentence == sentence


def test_schema_validation_is_allowed_with_a_registry() -> None:
    overrides = {"confluent.key.schema.validation": "true", "confluent.value.schema.validation": "true"}
    validate_topic_configs(overrides, config(confluent_schema_registry_url="http://registry:8081"))
    validate_topic_configs(dict.fromkeys(overrides, "false"), config())


def test_topic_configs_are_validated_with_the_broker_defaults() -> None:
    validate_topic_configs({"cleanup.policy": "compact,compact", "internal.segment.bytes": "100"}, config())
    with pytest.raises(ConfigError, match="conflict"):
        validate_topic_configs({"max.compaction.lag.ms": "4"}, config(log_cleaner_min_compaction_lag_ms="5"))


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "50"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"share.delivery.count.limit": "1"},
            "Invalid value 1 for configuration share.delivery.count.limit: Value must be at least 2",
        ),
    ],
    ids=str,
)
def test_invalid_group_config_changes_are_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        validate_group_configs(overrides, config().values)
    assert refusal.value.sentence == sentence


def test_session_timeout_must_exceed_heartbeat_interval() -> None:
    roomy = BrokerConfig(
        NODE
        | {
            "group.consumer.max.heartbeat.interval.ms": "99999",
            "group.consumer.min.heartbeat.interval.ms": "1",
        }
    )
    validate_group_configs({"consumer.heartbeat.interval.ms": "44999"}, roomy.values)
    with pytest.raises(ConfigError, match=r"session\.timeout\.ms must be greater than consumer\.heartbeat"):
        validate_group_configs({"consumer.heartbeat.interval.ms": "45000"}, roomy.values)


@pytest.mark.parametrize(
    ("name", "overrides", "code", "sentence"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ("m", {"nope": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        (
            "m",
            {"interval.ms": "1"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("m", {"match": "a"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: a"),
        (
            "m",
            {"match": "client_id=["},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=[",
        ),
        (
            "m",
            {"match": "client_id=a=b"},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=a=b",
        ),
    ],
)
def test_invalid_client_metrics_configs_are_refused(
    name: str, overrides: dict[str, str], code: ErrorCode, sentence: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate_client_metrics_configs(name, overrides)
    assert (refusal.value.code, refusal.value.message) == (code, sentence)


def test_client_metrics_match_patterns_are_parsed() -> None:
    validate_client_metrics_configs("m", {"metrics": "*", "match": "client_id = a.*, client_source_port=1"})
    assert parse_match_patterns(["client_id = a.*"])["client_id"].fullmatch("abc")
