"""`Cluster(security=…)`: clusters with TLS and SASL, and the configs that their clients need."""

from __future__ import annotations

import stat
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster, NodeFailed
from tests.harness.tools import run_tool

MODES = ("SSL", "mTLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
RECORDS = [f"record {number}".encode() for number in range(50)]


def produce_and_consume(configs: dict[str, str], topic: str = "topic") -> list[bytes]:
    producer = confluent_kafka.Producer({**configs, "acks": "all"})
    for record in RECORDS:
        producer.produce(topic, record)
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer({**configs, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.consume(len(RECORDS), timeout=20)
    consumer.close()
    return sorted(message.value() or b"" for message in found)


@pytest.mark.parametrize("mode", MODES)
def test_clients_use_the_configs_of_the_cluster(mode: str) -> None:
    with Cluster(security=mode) as cluster:
        assert produce_and_consume(cluster.librdkafka_config) == sorted(RECORDS)
        if mode != "OAUTHBEARER":
            arguments: dict[str, Any] = cluster.python_config
            client = kafka.KafkaConsumer(**arguments)
            assert client.topics() == {"topic"}
            client.close()


@pytest.mark.parametrize("mode", ["mTLS", "PLAIN", "OAUTHBEARER"])
def test_tools_use_the_configs_of_the_cluster(mode: str, tmp_path: Any) -> None:
    with Cluster(security=mode) as cluster:
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in cluster.client_config.items()))
        common = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(file))
        assert run_tool("kafka-topics", *common, "--create", "--topic", "t").code == 0
        assert "t" in run_tool("kafka-topics", *common, "--list").lines


@pytest.mark.parametrize("mode", ["SSL", "mTLS", "SCRAM-SHA-512"])
def test_three_nodes_replicate_over_secured_listeners(mode: str) -> None:
    with Cluster(brokers=3, security=mode) as cluster:
        configs = cluster.librdkafka_config
        admin = AdminClient(configs)
        for future in admin.create_topics([NewTopic("topic", 3, 3)]).values():
            future.result(20)
        assert produce_and_consume(configs) == sorted(RECORDS)
        cluster.kill(1)
        cluster.wait_for_brokers()
        assert produce_and_consume(configs, "other") == sorted(RECORDS)
        cluster.restart(1)
        cluster.wait_for_brokers()


def test_dedicated_controllers_demand_certificates_of_brokers() -> None:
    with Cluster(brokers=1, controllers=1, security="mTLS") as cluster:
        assert produce_and_consume(cluster.librdkafka_config) == sorted(RECORDS)


def test_principals_with_an_authorizer() -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker;User:moldau",
    }
    for mode in ("mTLS", "SCRAM-SHA-512"):
        with Cluster(brokers=2, security=mode, config=config) as cluster:
            assert produce_and_consume(cluster.librdkafka_config) == sorted(RECORDS)


def test_secrets_are_readable_by_their_owner_only() -> None:
    with Cluster(brokers=2, security="SCRAM-SHA-512") as cluster:
        folder = cluster.data_dir / "security"
        files = [*folder.iterdir(), *cluster.data_dir.glob("node-*/server.properties")]
        private = [each for each in (folder, *files) if each.name != "ca.pem"]
        assert [stat.S_IMODE(each.stat().st_mode) & 0o077 for each in private] == [0] * len(private)
        logs = "".join(node.log_file.read_text() for node in cluster.nodes)
        assert cluster.librdkafka_config["sasl.password"] not in logs


def test_an_unknown_security_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of"):
        Cluster(security="SASL")


def test_a_wrong_password_is_refused() -> None:
    with Cluster(security="PLAIN") as cluster:
        configs = {**cluster.librdkafka_config, "sasl.password": "wrong", "log_level": 0}
        errors: list[confluent_kafka.KafkaError] = []
        consumer = confluent_kafka.Consumer({**configs, "group.id": "g", "error_cb": errors.append})
        with pytest.raises(confluent_kafka.KafkaException):
            consumer.list_topics(timeout=5)
        consumer.close()


def test_a_node_with_a_broken_store_says_why() -> None:
    config = {"ssl.keystore.location": "/nonexistent/broker.pem"}
    with pytest.raises(NodeFailed, match="cannot be read"), Cluster(security="SSL", config=config):
        pass
