"""Users in kafka-configs, and kafka-delegation-tokens, compared with Apache Kafka's tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.tool_pairs import Both, Tools
from tests.harness.nodes.sasl import sasl_config
from tests.harness.tools import ToolRun

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TOOL = "kafka-delegation-tokens"
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="alice-secret";\n'
)


@pytest.fixture(scope="module")
def secured(libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tools, str]]:
    """Tools for a node with users and tokens, and the file with alice's login."""
    folder = tmp_path_factory.mktemp("users")
    file = folder / "alice.properties"
    file.write_text(LOGIN)
    config = sasl_config("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", extra={"delegation.token.secret.key": "secret"})
    with Cluster(config=config) as node:
        yield Tools(node, libs, folder), str(file)


@pytest.fixture(scope="module")
def plain(libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with Cluster() as node:
        yield Tools(node, libs, tmp_path_factory.mktemp("plain"))


def masked(run: ToolRun) -> list[str]:
    """Return the lines without ids, HMACs and dates."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE", run.out)
    text = re.sub(r"\b[\w-]{22} +[\w+/]{86}==", "TOKEN", text)
    return re.sub(r"tokenId : [\w-]{22}", "tokenId : ID", text).splitlines()


def same(both: Both) -> list[str]:
    assert (both.ours.code, both.java.code) == (0, 0), both
    assert masked(both.ours) == masked(both.java)
    return masked(both.ours)


def hmac_of(run: ToolRun) -> str:
    return run.lines[-1].split()[1]


def test_tokens_are_created_renewed_and_expired_as_by_java(secured: tuple[Tools, str]) -> None:
    tools, file = secured
    login = ("--command-config", file)
    renewers = ("--renewer-principal", "User:bob", "--renewer-principal", "User:carol")
    created = tools.run(TOOL, *login, "--create", "--max-life-time-period", "-1", *renewers)
    assert len(same(created)) == 6
    for run in created:
        hmac = hmac_of(run)
        same(tools.run(TOOL, *login, "--renew", "--renew-time-period", "60000", "--hmac", hmac))
        same(tools.run(TOOL, *login, "--expire", "--expiry-time-period", "60000", "--hmac", hmac))
    same(tools.run(TOOL, *login, "--describe", "--owner-principal", "User:alice"))
    same(tools.run(TOOL, *login, "--describe", "--owner-principal", "User:x", "--owner-principal", "User:y"))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java_logs_in_with_a_token(secured: tuple[Tools, str], tmp_path: Path, mechanism: str) -> None:
    tools, file = secured
    created = tools.run(TOOL, "--command-config", file, "--create", "--max-life-time-period", "-1")
    token_id, hmac = created.java.lines[-1].split()[:2]
    login = tmp_path / "token.properties"
    login.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token_id}" password="{hmac}" tokenauth="true";\n'
    )
    tools.same("kafka-topics", "--list", "--command-config", str(login))
    refused = tools.run(TOOL, "--command-config", str(login), "--create", "--max-life-time-period", "-1")
    assert all("requests are not allowed on PLAINTEXT" in run.out + run.err for run in refused)


@pytest.mark.parametrize(
    "argv",
    [
        ["--create"],
        ["--create", "--describe"],
        ["--renew", "--renew-time-period", "1"],
        ["--describe", "--hmac", "AQID"],
        ["--expire", "--expiry-time-period", "-1", "--hmac", "AQID"],
        ["--create", "--max-life-time-period", "1", "--renewer-principal", "Group:x"],
        [],
    ],
    ids=" ".join,
)
def test_refused_token_commands_match_java(secured: tuple[Tools, str], argv: list[str]) -> None:
    tools, file = secured
    both = tools.run(TOOL, "--command-config", file, *argv)
    assert both.ours.code == both.java.code != 0, both
    sentence = (both.ours.err or both.ours.out).strip().splitlines()[0].removeprefix("Error: ")
    assert sentence in both.java.out + both.java.err


def test_users_are_altered_and_described_as_by_java(plain: Tools) -> None:
    def configs(*argv: str) -> str:
        return plain.same("kafka-configs", "--entity-type", "users", *argv, topic="user")

    named = ("--entity-name", "{topic}")
    configs("--alter", *named, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=p,w=1]")
    configs("--alter", *named, "--add-config", "SCRAM-SHA-256=[password=p]")
    configs("--alter", *named, "--add-config", "SCRAM-SHA-256=[iterations=-1,password=p]")
    assert "SCRAM-SHA-512=iterations=8192" in configs("--describe", *named)
    configs("--alter", *named, "--add-config", "producer_byte_rate=1000")
    assert "Quota configs" in configs("--describe", *named)
    configs("--alter", *named, "--delete-config", "SCRAM-SHA-512")
    configs("--describe", *named)
    assert configs("--describe", "--entity-name", "unknown") == ""


@pytest.mark.parametrize(
    "argv",
    [
        ["--entity-name", "u", "--delete-config", "SCRAM-SHA-256"],
        ["--entity-name", "u", "--add-config", "SCRAM-SHA-256=[iterations=100,password=p]"],
        ["--entity-name", "u", "--add-config", "SCRAM-SHA-256=[iterations=20000,password=p]"],
        ["--entity-name", "u", "--add-config", "SCRAM-SHA-256=[password=]"],
        ["--entity-name", "u", "--add-config", "SCRAM-SHA-256=[password=p],SCRAM-SHA-512=[password=p]"],
        ["--entity-name", "u", "--add-config", "SCRAM-SHA-256=[password=p],producer_byte_rate=1"],
        ["--entity-default", "--add-config", "SCRAM-SHA-256=[password=p]"],
    ],
    ids=" ".join,
)
def test_refused_alterations_of_users_match_java(plain: Tools, argv: list[str]) -> None:
    plain.same_failure("kafka-configs", "--alter", "--entity-type", "users", *argv)
