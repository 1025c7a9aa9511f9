"""Nodes that ask their clients for a SASL login over plain text."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.testing import Cluster
from tests.harness.waiting import eventually

USER, PASSWORD = "alice", "alice-secret"
#: The user of the nodes themselves.
ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
#: The listeners of `Cluster` have these names, whatever their protocol.
CLIENT_PREFIX = "listener.name.plaintext."
CONTROLLER_PREFIX = "listener.name.controller."
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{ADMIN}" password="{ADMIN_PASSWORD}" '
    f'user_{ADMIN}="{ADMIN_PASSWORD}" user_{USER}="{PASSWORD}" user_bob="bob-secret";'
)
SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

Config = dict[str, str | int | bool]


def sasl_config(
    mechanisms: str = "PLAIN",
    *,
    controller: bool = False,
    extra: Mapping[str, str | int | bool] | None = None,
) -> Config:
    """Return the configs of a node whose client listener, and controller listener if asked, use SASL.

    The nodes log in to each other with PLAIN.
    """
    protocol = "SASL_PLAINTEXT" if controller else "PLAINTEXT"
    config: Config = {
        "listener.security.protocol.map": f"PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:{protocol}",
        "sasl.enabled.mechanisms": mechanisms,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{CLIENT_PREFIX}plain.sasl.jaas.config": PLAIN_JAAS,
        f"{CLIENT_PREFIX}scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
        f"{CLIENT_PREFIX}scram-sha-512.sasl.jaas.config": SCRAM_JAAS,
    }
    if controller:
        config[f"{CONTROLLER_PREFIX}plain.sasl.jaas.config"] = PLAIN_JAAS
        config[f"{CONTROLLER_PREFIX}sasl.enabled.mechanisms"] = "PLAIN"
    return {**config, **(extra or {})}


def librdkafka(
    bootstrap: str, mechanism: str = "PLAIN", user: str = USER, password: str = PASSWORD
) -> dict[str, str | int | float | bool]:
    """Return the properties of a confluent-kafka client."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def kwargs(
    bootstrap: str, mechanism: str = "PLAIN", user: str = USER, password: str = PASSWORD
) -> dict[str, str]:
    """Return the arguments of a kafka-python or aiokafka client."""
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def start_several(cluster: Cluster) -> Cluster:
    """Start a cluster of several nodes and wait until its brokers know each other."""
    from confluent_kafka.admin import AdminClient

    for node in cluster.nodes:
        node.start(wait=False)
    for node in cluster.nodes:
        node.wait_ready()
    ids = {node.id for node in cluster.brokers}
    for node in cluster.brokers:
        admin = AdminClient(librdkafka(f"127.0.0.1:{node.port}"))
        eventually(
            lambda admin=admin: set(admin.list_topics(timeout=10).brokers) == ids,
            what="all brokers are known",
        )
    return cluster
