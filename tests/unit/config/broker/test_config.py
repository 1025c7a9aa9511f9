"""The configuration of a node: derived values, and combinations that are refused.

`tests/interop` sends these and many more to Apache Kafka and compares the verdicts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.config.listeners import Endpoint
from moldau.config.quorum_voters import HostPort, Voter
from tests.unit.config.node_properties import NODE, config, node

THREE = "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_minimal_properties_file() -> None:
    read = config()
    assert read.node_id == 1
    assert read.process_roles == {"broker", "controller"}
    assert read.log_dirs == read.directories == ("/data/a",)
    assert read.metadata_log_dir == "/data/a"
    assert read.listeners == (
        Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),
        Endpoint("CONTROLLER", "PLAINTEXT", "", 9093),
    )
    assert read.advertised_listeners == read.broker_listeners == read.listeners[:1]
    assert read.advertised_controller_listeners == read.controller_listeners == read.listeners[1:]
    assert read.inter_broker_listener_name == "PLAINTEXT"
    assert read.quorum_voters == (Voter(1, "localhost", 9093),)
    assert read["num.partitions"] == read.integer("num.partitions") == 1
    assert read.boolean("auto.create.topics.enable") is True
    assert read.text("broker.rack") is None
    assert read.entries("log.cleanup.policy") == ("delete",)
    assert read.entries("advertised.listeners") == ()
    assert read.warnings == ()


def test_properties_file_of_apache_kafka_is_accepted() -> None:
    shipped = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "num.network.threads": "3",
        "log.dirs": "/tmp/kraft-combined-logs",
        "log.retention.hours": "168",
    }
    read = BrokerConfig.from_properties(shipped)
    assert read.quorum_voters == ()
    assert read.quorum_bootstrap_servers == (HostPort("localhost", 9093),)
    assert read.advertised_listeners == (Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092),)
    assert read.advertised_controller_listeners[0].host == "localhost"
    assert read.warnings == ()


def test_node_id_and_broker_id_are_synonyms() -> None:
    assert config("node.id", broker_id="7", controller_quorum_voters="7@h:1").node_id == 7
    assert config(broker_id="1")["broker.id"] == 1
    assert config()["broker.id"] == 1


def test_log_dirs_and_metadata_log_dir() -> None:
    read = config(log_dirs="/b, /a", metadata_log_dir="/m")
    assert (read.log_dirs, read.metadata_log_dir, read.directories) == (
        ("/b", "/a"),
        "/m",
        ("/a", "/b", "/m"),
    )
    assert config("log.dirs").log_dirs == ("/tmp/kafka-logs",)
    assert config("log.dirs", log_dir="/x").log_dirs == ("/x",)
    assert config(log_dirs="/b,/a").metadata_log_dir == "/b"


def test_controller_endpoint_of_a_wildcard_listener_is_the_host_name() -> None:
    read = config(listeners="PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093")
    assert read.controller_listeners[0].host == "0.0.0.0"
    assert read.advertised_controller_listeners[0].host == ""


def test_listener_prefix_overrides_a_config() -> None:
    read = BrokerConfig.from_properties(NODE | {"listener.name.plaintext.max.connections": "7"})
    assert read.for_listener("PLAINTEXT", "max.connections") == 7
    assert read.for_listener("CONTROLLER", "max.connections") == 2**31 - 1


def test_max_connections_per_ip_overrides_are_parsed() -> None:
    read = config(max_connections_per_ip_overrides="host:5,::1:6")
    assert read.max_connections_per_ip_overrides == {"host": 5, "::1": 6}


@pytest.mark.parametrize(
    ("changes", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "2"}, 7_200_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3"}, 180_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3", "log_retention_ms": "4"}, 4),
        ({"log_retention_ms": "-1"}, -1),
        ({"log_retention_hours": "-5"}, -1),
    ],
)
def test_retention_ms_overrides_minutes_and_hours(changes: dict[str, str], retention_ms: int) -> None:
    assert config(**changes).topic_default_values["retention.ms"] == retention_ms


def test_topics_inherit_broker_configs() -> None:
    read = config(log_roll_hours="1", log_flush_scheduler_interval_ms="9", log_cleanup_policy="compact")
    defaults = read.topic_defaults()
    assert (defaults["segment.ms"], defaults["flush.ms"], defaults["cleanup.policy"]) == (
        "3600000",
        "9",
        "compact",
    )
    assert "internal.segment.bytes" not in defaults


def test_topic_configs_override_broker_configs() -> None:
    values = config().topic_values({"segment.bytes": "100", "retention.ms": "nonsense", "no.such.name": "1"})
    assert values["segment.bytes"] == 100
    assert values["retention.ms"] == 604_800_000
    assert "no.such.name" not in values


def test_unknown_config_names_are_warnings() -> None:
    read = BrokerConfig.from_properties(
        NODE
        | {
            "num.partition": "3",
            "zookeeper.connect": "h:1",
            "something.else": "x",
            "listener.name.x.foo": "y",
            "rsm.config.bucket": "b",
        }
    )
    assert read.warnings == (
        "Unknown setting num.partition is ignored. Did you mean num.partitions?",
        "Unknown setting something.else is ignored.",
        "Unknown setting zookeeper.connect is ignored. It belongs to Kafka before 4.0.",
    )


def test_java_plugins_that_only_observe_are_warnings() -> None:
    assert config(metric_reporters="x.Y").warnings == (
        "metric.reporters=x.Y names Java classes, which Moldau does not load; it is ignored.",
    )


def test_heartbeat_interval_close_to_the_session_timeout_is_a_warning() -> None:
    (warning,) = config(broker_heartbeat_interval_ms="5000").warnings
    assert warning.startswith(
        "broker.heartbeat.interval.ms=5000 should be at most half of broker.session.timeout"
    )


B = {"process_roles": "broker", "node_id": "2", "listeners": "PLAINTEXT://:9092"}
C = {"process_roles": "controller", "listeners": "CONTROLLER://:9093"}
LISTENERS = {"listener_security_protocol_map": THREE, "listeners": "A://:1,B://:2,CONTROLLER://:3"}


@pytest.mark.parametrize(
    "changes",
    [
        B,
        C,
        B | {"controller_listener_names": "X,Y"},
        C | {"advertised_listeners": "CONTROLLER://h:9"},
        C | {"listeners": "CONTROLLER://0.0.0.0:9093"},
        {"process_roles": "broker,broker,controller"},
        {"listeners": "plaintext://:9092,controller://:9093"},
        {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"},
        {"advertised_listeners": "PLAINTEXT://h:1,CONTROLLER://h:1"},
        LISTENERS | {"inter_broker_listener_name": "a"},
        {
            "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl_mechanism_inter_broker_protocol": "PLAIN",
            "listener_name_plaintext_sasl_enabled_mechanisms": "PLAIN",
        },
        {"early_start_listeners": "PLAINTEXT"},
        {"log_retention_ms": "5", "log_retention_hours": "0"},
        {"cordoned_log_dirs": "/data/a"},
        {"cordoned_log_dirs": "*"},
        {"connections_max_idle_ms": "-1"},
        {"max_connections_per_ip": "0", "max_connections_per_ip_overrides": "h:1"},
    ],
    ids=str,
)
def test_configs_that_kafka_accepts_are_accepted(changes: dict[str, str]) -> None:
    BrokerConfig(node(**changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"node_id": "x"}, "Invalid value x for configuration broker.id: Not a number of type INT"),
        ({"broker_id": "2"}, "node.id=1 and broker.id=2 differ; they are synonyms and must be equal."),
        (
            {"process_roles": "foo"},
            "Invalid value foo for configuration process.roles: String must be one of",
        ),
        (
            {"controller_quorum_voters": ""},
            "Neither controller.quorum.voters nor controller.quorum.bootstrap",
        ),
        ({"controller_quorum_voters": "2@h:1"}, "node.id=1 is missing from controller.quorum.voters=2@h:1"),
        ({"controller_quorum_voters": "1@0.0.0.0:1"}, "controller.quorum.voters names voter 1 at 0.0.0.0"),
        (B | {"node_id": "1"}, "node.id=1 is one of controller.quorum.voters, but process.roles=broker"),
        (
            B | {"listeners": NODE["listeners"]},
            "listeners contains CONTROLLER://:9093, a controller listener",
        ),
        (
            B | {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT"},
            "controller.listener.names has CONTROLLER",
        ),
        (B | {"controller_quorum_auto_join_enable": "true"}, "controller.quorum.auto.join.enable=true needs"),
        (C | {"listeners": NODE["listeners"]}, "listeners contains PLAINTEXT://:9092, which is not in"),
        (
            C | {"inter_broker_listener_name": "CONTROLLER"},
            "inter.broker.listener.name=CONTROLLER is also in",
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            "controller.listener.names has CONTROLLER, but listeners has no",
        ),
        ({"listeners": "CONTROLLER://:9093"}, "No listener is available to clients"),
        ({"listeners": "PLAINTEXT://:1,CONTROLLER://:1"}, "listeners uses port 1 more than once"),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1,CONTROLLER://:2"},
            "advertised.listeners would make clients connect",
        ),
        (
            {"advertised_listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners would make clients connect",
        ),
        ({"advertised_listeners": "CONTROLLER://h:1"}, "No listener is available to clients"),
        (
            {"advertised_listeners": "X://h:1"},
            "advertised.listeners has a listener named X, but listener.security",
        ),
        (
            {"controller_listener_names": "CONTROLLER,X"},
            "controller.listener.names has X, but listeners has no",
        ),
        (
            {
                "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl_enabled_mechanisms": "PLAIN",
            },
            "sasl.mechanism.inter.broker.protocol=GSSAPI must be included in sasl.enabled.mechanisms=PLAIN",
        ),
        (
            LISTENERS,
            "The inter-broker listener is PLAINTEXT (inter.broker.listener.name), but only A, B can",
        ),
        (
            LISTENERS | {"inter_broker_listener_name": "Z"},
            "inter.broker.listener.name=Z is not in listener.security",
        ),
        (
            LISTENERS | {"inter_broker_listener_name": "A", "security_inter_broker_protocol": "PLAINTEXT"},
            "inter.broker.listener.name=A and security.inter.broker.protocol are both set",
        ),
        (
            LISTENERS | {"inter_broker_listener_name": "A", "advertised_listeners": "B://h:2"},
            "The inter-broker listener is A (inter.broker.listener.name), but only B can be reached",
        ),
        ({"early_start_listeners": "X"}, "early.start.listeners has X, but the only listeners are"),
        ({"log_roll_ms": "0"}, "log.roll.ms=0 must be at least 1."),
        ({"log_roll_jitter_ms": "-1"}, "log.roll.jitter.ms=-1 must be at least 0."),
        (
            {"log_retention_minutes": "0"},
            "log.retention.ms, log.retention.minutes or log.retention.hours is 0",
        ),
        ({"log_cleaner_threads": "0"}, "log.cleaner.dedupe.buffer.size=134217728 must be more than 1 MiB"),
        ({"cordoned_log_dirs": "/y"}, "cordoned.log.dirs=/y must name folders of log.dirs=/data/a"),
        ({"cordoned_log_dirs": "*,/data/a"}, "cordoned.log.dirs=*,/data/a must name folders"),
        (
            {"replica_lag_time_max_ms": "100"},
            "replica.fetch.wait.max.ms=500 must not be more than replica.lag",
        ),
        ({"queued_max_request_bytes": "5"}, "queued.max.request.bytes=5 must be at least socket.request.max"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip=0 needs exceptions"),
        ({"max_connections_per_ip_overrides": "h:x"}, "max.connections.per.ip.overrides has the entry 'h:x'"),
        (
            {"connections_max_idle_ms": "50"},
            "connection.failed.authentication.delay.ms=100 must be less than",
        ),
        (
            {"group_coordinator_rebalance_protocols": "consumer"},
            "group.coordinator.rebalance.protocols=consumer",
        ),
        ({"group_share_assignors": "simple,x"}, "group.share.assignors=simple,x must contain exactly one"),
        (
            {"group_consumer_session_timeout_ms": "1"},
            "group.consumer.min.session.timeout.ms=45000 must not be",
        ),
        (
            {"group_share_max_size": "1000", "group_share_max_share_sessions": "1"},
            "group.share.max.size=1000 must",
        ),
        (
            {"offsets_topic_compression_codec": "9"},
            "offsets.topic.compression.codec=9 must be 0 (none), 1 (gzip)",
        ),
        ({"num_partitions": ""}, "Invalid value  for configuration num.partitions: Not a number of type INT"),
        ({"log_dirs": ""}, "Configuration 'log.dirs' must not be empty."),
    ],
    ids=str,
)
def test_invalid_config_is_refused_with_a_helpful_message(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig(node(**changes))
    assert refusal.value.sentence.startswith(sentence)


def test_zookeeper_config_error_names_the_kraft_configs() -> None:
    with pytest.raises(ConfigError, match="The file is for a cluster with ZooKeeper"):
        BrokerConfig({"broker.id": "0", "zookeeper.connect": "localhost:2181", "log.dirs": "/x"})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"remote_log_storage_system_enable": "true"},
            "remote.log.storage.system.enable=true needs remote.log.storage.manager.class.name",
        ),
        (
            {
                "remote_log_storage_system_enable": "true",
                "remote_log_storage_manager_class_name": "x.Y",
                "remote_log_metadata_manager_class_name": "x.Z",
            },
            "remote.log.metadata.manager.class.name=x.Z names a class that Moldau cannot run",
        ),
        ({"create_topic_policy_class_name": "x.Y"}, "create.topic.policy.class.name=x.Y names a Java class"),
        ({"principal_builder_class": "x.Y"}, "principal.builder.class=x.Y names a Java class"),
        (
            {"listener_name_plaintext_principal_builder_class": "x.Y"},
            "listener.name.plaintext.principal.builder.class=x.Y names a Java class",
        ),
        ({"client_quota_callback_class": "x.Y"}, "client.quota.callback.class=x.Y names a Java class"),
        ({"alter_config_policy_class_name": "x.Y"}, "alter.config.policy.class.name=x.Y names a Java class"),
        (
            {"group_consumer_assignors": "x.Y"},
            "group.consumer.assignors has x.Y; Moldau has only uniform and range",
        ),
    ],
    ids=str,
)
def test_unsupported_configs_are_refused(changes: dict[str, str], sentence: str) -> None:
    properties = node(**changes)
    BrokerConfig.from_properties(properties, supported_only=False)
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.from_properties(properties)
    assert refusal.value.sentence.startswith(sentence)


def test_kafkas_own_assignors_may_be_named_by_class() -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    assert config(group_consumer_assignors=f"{package}.RangeAssignor,uniform")


def test_properties_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in NODE.items()))
    assert BrokerConfig.load(str(path), {"num.partitions": "5"})["num.partitions"] == 5
    with pytest.raises(ConfigError, match="Cannot read the properties file nowhere: No such file"):
        BrokerConfig.load("nowhere")
    path.write_text("a=\\u1")
    with pytest.raises(ConfigError, match="line 1: "):
        BrokerConfig.load(str(path))


def test_values_come_from_config_providers(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("rack=r1\nthreads=7\n")
    file = f"${{file:{tmp_path}/secrets.properties"
    properties = node(
        config_providers="file",
        config_providers_file_class="org.apache.kafka.common.config.provider.FileConfigProvider",
        broker_rack=f"{file}:rack}}",
    )
    read = BrokerConfig.from_properties(properties)
    assert read["broker.rack"] == "r1"
    changed = read.with_dynamic({}, {"background.threads": f"{file}:threads}}"})
    assert changed["background.threads"] == 7
    assert changed.dynamic_broker["background.threads"] == f"{file}:threads}}"
    with pytest.raises(ConfigError, match="has no value"):
        BrokerConfig.from_properties(properties | {"broker.rack": f"{file}:other}}"})
    with pytest.raises(ConfigError, match="has no value"):
        read.with_dynamic({}, {"background.threads": f"{file}:other}}"})
