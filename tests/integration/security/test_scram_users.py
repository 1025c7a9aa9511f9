"""SCRAM users: created with kafka-storage and kafka-configs, and used by librdkafka to log in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.harness.apache.node import free_port
from tests.harness.nodes.properties_file import Operator
from tests.harness.tools import Tools, run_tool, tool_command
from tests.harness.waiting import eventually

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


class Secured(NamedTuple):
    operator: Operator
    sasl_port: int

    @property
    def tools(self) -> Tools:
        """Tools on the listener without a login."""
        return Tools(f"localhost:{self.operator.port}")

    def alter(self, user: str, *argv: str) -> list[str]:
        entity = ("--alter", "--entity-type", "users", "--entity-name", user)
        return self.tools.good("kafka-configs", *entity, *argv)

    def describe(self, *argv: str) -> list[str]:
        return self.tools.good("kafka-configs", "--describe", "--entity-type", "users", *argv)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Secured]:
    operator = Operator(tmp_path)
    port = operator.add_scram_listener(SHA_256, SHA_512)
    formatted = operator.format("--add-scram", f"{SHA_256}=[name=alice,password=alice-secret]")
    assert formatted.code == 0 and "alice-secret" not in formatted.out
    process = operator.launch()
    eventually(operator.ready, what="the port is open")
    yield Secured(operator, port)
    operator.stop()
    process.wait(60)
    assert "secret" not in operator.printed()


def logs_in(node: Secured, mechanism: str, user: str, password: str) -> bool:
    """Whether librdkafka gets metadata as this user, or reports that the login failed."""
    errors: list[KafkaError] = []
    admin = AdminClient(
        {
            "bootstrap.servers": f"localhost:{node.sasl_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
            "error_cb": errors.append,
        }
    )

    def outcome() -> str | None:
        try:
            return "logged in" if admin.list_topics(timeout=1).brokers else None
        except KafkaException:
            admin.poll(0)
            refused = any(error.code() == KafkaError._AUTHENTICATION for error in errors)
            return "refused" if refused else None

    return eventually(outcome, what="the outcome of the login") == "logged in"


def test_a_user_of_kafka_storage_logs_in(node: Secured) -> None:
    assert logs_in(node, SHA_256, "alice", "alice-secret")
    assert not logs_in(node, SHA_256, "alice", "other")
    assert not logs_in(node, SHA_512, "alice", "alice-secret")
    assert node.describe() == [
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096"
    ]


def test_a_user_of_kafka_configs_logs_in_until_deleted(node: Secured) -> None:
    added = ("--add-config", f"{SHA_512}=[iterations=8192,password=bob-secret]")
    assert node.alter("bob", *added) == ["Completed updating config for user bob."]
    assert logs_in(node, SHA_512, "bob", "bob-secret")
    node.alter("bob", "--add-config", "producer_byte_rate=1000000")
    assert node.describe("--entity-name", "bob") == [
        "Quota configs for user-principal 'bob' are producer_byte_rate=1000000.0",
        "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192",
    ]
    node.alter("bob", "--delete-config", SHA_512)
    assert not logs_in(node, SHA_512, "bob", "bob-secret")
    assert logs_in(node, SHA_256, "alice", "alice-secret")


def test_two_mechanisms_of_one_user_in_one_request_are_refused(node: Secured) -> None:
    both = f"{SHA_256}=[password=bob-secret],{SHA_512}=[password=bob-secret]"
    refused = node.tools.run(
        "kafka-configs", *("--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config", both)
    )
    assert refused.code == 1
    assert "A user credential cannot be altered twice in the same request" in refused.err
    assert "bob-secret" not in refused.err


def test_librdkafka_creates_describes_and_deletes_users(node: Secured) -> None:
    admin = AdminClient({"bootstrap.servers": f"localhost:{node.operator.port}"})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10_000)
    users = [UserScramCredentialUpsertion(user, info, b"carol-secret") for user in ("carol", "dave")]
    for altered in admin.alter_user_scram_credentials(users).values():
        altered.result(30)
    assert logs_in(node, SHA_512, "dave", "carol-secret")
    found = admin.describe_user_scram_credentials(["carol"])["carol"].result(30)
    assert [(each.mechanism, each.iterations) for each in found.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_512, 10_000)
    ]
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])["carol"].result(30)
    with pytest.raises(KafkaException) as refused:
        admin.alter_user_scram_credentials([deletion])["carol"].result(30)
    assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND
    assert set(admin.describe_user_scram_credentials().result(30)) == {"alice", "dave"}


def test_users_survive_a_restart(node: Secured) -> None:
    node.alter("bob", "--add-config", f"{SHA_256}=[password=bob-secret]")
    node.operator.stop()
    eventually(lambda: not node.operator.ready(), what="the node has stopped")
    process = node.operator.launch()
    eventually(node.operator.ready, what="the port is open again")
    try:
        assert logs_in(node, SHA_256, "bob", "bob-secret")
        assert logs_in(node, SHA_256, "alice", "alice-secret")
    finally:
        node.operator.stop()
        process.wait(60)


def test_a_broker_logs_in_to_its_controller_with_scram(tmp_path: Path) -> None:
    """The controllers know the user once they have loaded the metadata; the broker retries until then."""
    ports = {name: free_port() for name in ("broker", "controller")}
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    common = [
        f"controller.quorum.voters=1@localhost:{ports['controller']}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        f"sasl.mechanism.controller.protocol={SHA_512}",
        f"listener.name.controller.sasl.enabled.mechanisms={SHA_512}",
        f"listener.name.controller.scram-sha-512.sasl.jaas.config={module} "
        'username="broker" password="broker-secret";',
        "offsets.topic.replication.factor=1",
    ]
    roles = {
        "controller": ["process.roles=controller", "node.id=1", "listeners=CONTROLLER://:{controller}"],
        "broker": ["process.roles=broker", "node.id=2", "listeners=PLAINTEXT://localhost:{broker}"],
    }
    identity = run_tool("kafka-storage", "random-uuid").out.strip()
    processes = []
    try:
        for role, lines in roles.items():
            file = tmp_path / f"{role}.properties"
            own = [line.format(**ports) for line in lines]
            file.write_text("\n".join([*common, *own, f"log.dirs={tmp_path / role}"]))
            user = f"{SHA_512}=[name=broker,password=broker-secret]"
            assert run_tool("kafka-storage", "format", "-t", identity, "-c", str(file), "-S", user).code == 0
            processes.append(subprocess.Popen(tool_command("kafka-server-start", str(file))))
        admin = AdminClient({"bootstrap.servers": f"localhost:{ports['broker']}", "log_level": 0})
        eventually(lambda: 2 in admin.list_topics(timeout=30).brokers, what="the broker is registered")
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(60)
