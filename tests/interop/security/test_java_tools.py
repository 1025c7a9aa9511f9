"""Kafka's Java tools with `--command-config` give the same output for a secured Moldau as for Apache."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from tests.harness.security.client_settings import Way, java_settings, write_java_settings
from tests.harness.security.secured_node import ADMIN, SecuredNode
from tests.interop.conftest import JavaTool

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RUN = uuid.uuid4().hex[:6]

#: Token ids, HMACs, times and addresses differ; tables are aligned by their contents.
_REPLACED = (
    (re.compile(r"\b[A-Za-z0-9+/]{86}=="), "HMAC"),
    (re.compile(r"\b[A-Za-z0-9_-]{22}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d"), "TIME"),
    (re.compile(r"localhost:\d+"), "ADDRESS"),
    (re.compile(r"\[\d{4}-\d\d-\d\d [\d:,]+\]"), "[TIME]"),
    (re.compile(r"^\d\d:\d\d:\d\d\.\d+", re.MULTILINE), "TIME"),
    # Kafka lists the mechanisms of a user in any order.
    (re.compile(r"(SCRAM-SHA-512=iterations=\d+), (SCRAM-SHA-256=iterations=\d+)"), r"\2, \1"),
    # Kafka prints its request object; ours has no message, and the client prints its own.
    (re.compile(r"Request Request\(.*\) needs [A-Z_]+ permission\."), "Cluster authorization failed."),
    (re.compile(r" +"), " "),
)


class Both:
    """Run a tool against both nodes with the same arguments; `{config}` is the file of the user."""

    def __init__(self, tool: JavaTool, nodes: tuple[SecuredNode, SecuredNode], folder: Path) -> None:
        self._tool = tool
        self._nodes = nodes
        self._folder = folder

    def run(self, user: str, main: str, *arguments: str, way: Way, stdin: str, option: str) -> list[str]:
        outputs = []
        for number, node in enumerate(self._nodes):
            settings = java_settings(node, way, user)
            address = settings.pop("bootstrap.servers")
            file = write_java_settings(self._folder / f"{number}-{user}.properties", settings)
            words = ("--bootstrap-server", address, option, str(file), *arguments)
            output, code = self._tool(main, *words, stdin=stdin)
            outputs.append(f"{_plain(output)}\nexit code {code}")
        return outputs

    def same(
        self,
        user: str,
        main: str,
        *arguments: str,
        way: Way = Way("SASL_SSL", "SCRAM-SHA-512"),  # noqa: B008
        stdin: str = "",
        option: str = "--command-config",
    ) -> str:
        theirs, ours = self.run(user, main, *arguments, way=way, stdin=stdin, option=option)
        assert ours == theirs
        return ours


def _plain(output: str) -> str:
    for pattern, word in _REPLACED:
        output = pattern.sub(word, output)
    return "\n".join(sorted(line.strip() for line in output.splitlines() if line.strip()))


@pytest.fixture
def both(tool: JavaTool, secured_apache: SecuredNode, secured_moldau: SecuredNode, tmp_path: Path) -> Both:
    return Both(tool, (secured_apache, secured_moldau), tmp_path)


def test_acls_and_the_console_tools(both: Both) -> None:
    """A user writes and reads after `kafka-acls --producer` and `--consumer`, not before."""
    topic, group = f"console-{RUN}", f"readers-{RUN}"
    both.same(ADMIN, TOPICS, "--create", "--topic", topic)
    refused = both.same("bob", TOPICS, "--describe", "--topic", topic)
    assert "exit code 1" in refused
    rules = ("--add", "--allow-principal", "User:bob", "--topic", topic)
    both.same(ADMIN, ACLS, *rules, "--producer")
    both.same(ADMIN, ACLS, *rules, "--consumer", "--group", group)
    assert "topic" in both.same("bob", TOPICS, "--describe", "--topic", topic).lower()
    both.same("bob", PRODUCER, "--topic", topic, stdin="one\ntwo\n")
    reading = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "2")
    read = both.same("bob", CONSUMER, *reading, "--timeout-ms", "30000")
    assert read.splitlines()[:2] == ["exit code 0", "one"] or "one\ntwo" in read
    both.same("bob", GROUPS, "--describe", "--group", group, "--offsets")
    listed = both.same(ADMIN, ACLS, "--list", "--topic", topic)
    assert "User:bob" in listed
    both.same(ADMIN, ACLS, "--list", "--principal", "User:bob", "--topic", topic)
    both.same("bob", ACLS, "--list")
    both.same("bob", ACLS, *rules, "--operation", "All")
    both.same(
        ADMIN, ACLS, "--remove", "--topic", topic, "--allow-principal", "User:bob", "--producer", "--force"
    )
    both.same(ADMIN, ACLS, "--list", "--topic", topic)


def test_users(both: Both) -> None:
    user = f"user-{RUN}"
    users = ("--entity-type", "users", "--entity-name", user)
    password = "SCRAM-SHA-256=[iterations=4096,password=new-secret]"
    both.same(ADMIN, CONFIGS, "--alter", *users, "--add-config", password)
    both.same(ADMIN, CONFIGS, "--alter", *users, "--add-config", "SCRAM-SHA-512=[password=new-secret]")
    both.same(ADMIN, CONFIGS, "--alter", *users, "--add-config", "producer_byte_rate=100000000")
    described = both.same(ADMIN, CONFIGS, "--describe", *users)
    assert "iterations=4096" in described
    both.same(ADMIN, CONFIGS, "--alter", *users, "--delete-config", "SCRAM-SHA-256")
    both.same(ADMIN, CONFIGS, "--alter", *users, "--delete-config", "SCRAM-SHA-256")
    both.same(ADMIN, CONFIGS, "--describe", *users)
    both.same(ADMIN, CONFIGS, "--alter", *users, "--add-config", "SCRAM-SHA-256=[iterations=10,password=a]")
    both.same("bob", CONFIGS, "--describe", *users)
    both.same("bob", CONFIGS, "--alter", *users, "--add-config", password)


def test_delegation_tokens(both: Both) -> None:
    lifetime = ("--max-life-time-period", "-1")
    created = both.same("alice", TOKENS, "--create", *lifetime, "--renewer-principal", "User:bob")
    assert "HMAC" in created
    described = both.same("alice", TOKENS, "--describe", "--owner-principal", "User:alice")
    assert "HMAC" in described
    both.same("eve", TOKENS, "--describe")
    both.same("bob", TOKENS, "--describe")
    # Not over one-way TLS, and not for others without CREATE_TOKENS.
    both.same("eve", TOKENS, "--create", *lifetime, "--owner-principal", "User:alice")
    both.same("alice", TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", "c29tZQ==")
    both.same("alice", TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", "c29tZQ==")
