"""Configurations of MirrorMaker 2's connectors become a flow."""

from __future__ import annotations

import pytest

from moldau.pipelines.connect.connectors.cluster.connectors import MirrorSourceConnector
from moldau.pipelines.connect.connectors.cluster.settings import flow_of
from moldau.pipelines.connect.data.errors import ConnectError

#: As Strimzi writes it, with settings that are the worker's.
CONFIG = {
    "name": "us->eu.MirrorSourceConnector",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "tasks.max": "4",
    "source.cluster.alias": "us",
    "source.cluster.bootstrap.servers": "us1:9092",
    "source.cluster.security.protocol": "PLAINTEXT",
    "source.consumer.isolation.level": "read_uncommitted",
    "target.cluster.alias": "eu",
    "target.cluster.bootstrap.servers": "eu1:9092",
    "target.producer.buffer.memory": "5000000",
    "topics": "orders.*, payments",
    "sync.topic.acls.enabled": "false",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "producer.override.linger.ms": "5",
    "errors.tolerance": "none",
}


def errors(**settings: str) -> dict[str, list[str]]:
    given = CONFIG | {name.replace("_", "."): value for name, value in settings.items()}
    values = MirrorSourceConnector().validate(given)
    return {name: each.errors for name, each in values.items() if each.errors}


def test_clusters_clients_and_topics_are_those_of_the_connector() -> None:
    flow = flow_of(CONFIG)
    assert str(flow) == "us->eu"
    assert flow.source_properties["bootstrap.servers"] == "us1:9092" and not flow.read_committed
    assert flow.target_properties["bootstrap.servers"] == "eu1:9092"
    assert flow.target_properties["buffer.memory"] == "5000000"
    assert flow.topics.allows("orders-1") and not flow.topics.allows("other")
    assert not flow["sync.topic.acls.enabled"]
    assert errors() == {}


def test_aliases_have_the_defaults_of_mirror_maker() -> None:
    given = {name: value for name, value in CONFIG.items() if not name.endswith(".alias")}
    assert str(flow_of(given)) == "source->target"


def test_an_error_belongs_to_its_setting() -> None:
    assert list(errors(refresh_topics_interval_seconds="never")) == ["refresh.topics.interval.seconds"]
    (found,) = errors(topicz="a")["topics"]
    assert found == "Unknown setting topicz; did you mean topics?"
    assert "source.cluster.bootstrap.servers" in errors(source_cluster_bootstrap_servers="")


def test_records_are_not_transformed() -> None:
    (found,) = errors(transforms="route")["source.cluster.bootstrap.servers"]
    assert "records are copied as they are" in found
    (found,) = errors(value_converter="org.apache.kafka.connect.json.JsonConverter").values()
    assert "only ByteArrayConverter" in found[0]


def test_each_task_copies_a_share_of_the_partitions() -> None:
    connector = MirrorSourceConnector()
    connector.properties = CONFIG
    configs = connector.task_configs(2)
    assert [(each["task.number"], each["task.count"]) for each in configs] == [("0", "2"), ("1", "2")]


def test_offsets_are_checked() -> None:
    connector = MirrorSourceConnector()
    where = {"cluster": "us", "topic": "orders", "partition": 0}
    assert connector.alter_offsets(CONFIG, [(where, {"offset": 5}), (where, None)])
    with pytest.raises(ConnectError, match="'topic'"):
        connector.alter_offsets(CONFIG, [({"cluster": "us", "partition": 0}, None)])
    with pytest.raises(ConnectError, match="not negative"):
        connector.alter_offsets(CONFIG, [(where, {"offset": -1})])
