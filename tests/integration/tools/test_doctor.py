"""`moldau doctor` at real listeners: each failure of TLS, SASL and ACLs is named with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moldau.cli.moldau.doctor.diagnosis import diagnose
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.cli.moldau.doctor.permissions import Checked
from moldau.client import AdminClient, NewTopic, checked
from moldau.security.tls.authority import Authority
from tests.harness.security.every_listener import SecuredListeners, every_listener, write_properties
from tests.harness.security.secured_node import AUTHORIZER, MECHANISMS, jaas
from tests.harness.tools import run_tool

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredListeners]:
    config = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS;User:admin"}
    with every_listener(tmp_path_factory.mktemp("secured"), config=config) as running:
        yield running


def findings(properties: dict[str, str], *permissions: Checked) -> list[Finding]:
    return diagnose(properties["bootstrap.servers"], properties=properties, checked=permissions)


def only_problem(properties: dict[str, str], *permissions: Checked) -> Finding:
    (found,) = [each for each in findings(properties, *permissions) if each.level is Level.PROBLEM]
    assert found.advice
    return found


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [("SSL", ""), ("MUTUAL", ""), *(("SASL_SSL", each) for each in MECHANISMS), ("SASL_PLAINTEXT", "PLAIN")],
)
def test_every_step_of_a_good_connection_is_reported(
    node: SecuredListeners, listener: str, mechanism: str
) -> None:
    found = findings(node.properties(listener, mechanism))
    assert {each.level for each in found} == {Level.GOOD}
    text = "\n".join(each.what for each in found)
    assert ("(names: localhost)" in text) == (listener != "SASL_PLAINTEXT")
    assert (f"accepts the login with {mechanism}" in text) == bool(mechanism)


@pytest.mark.parametrize(
    ("listener", "client", "sentence", "advice"),
    [
        ("SSL", "PLAINTEXT", "speaks TLS, but the client is configured for PLAINTEXT", "protocol=SSL"),
        ("SASL_SSL", "PLAINTEXT", "requires SASL authentication (PLAIN, SCRAM", "protocol=SASL_SSL"),
        ("SASL_SSL", "SASL_PLAINTEXT", "speaks TLS", "protocol=SASL_SSL"),
        ("SASL_SSL", "SSL", "requires SASL", "protocol=SASL_SSL"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "requires SASL", "protocol=SASL_PLAINTEXT"),
        ("SASL_PLAINTEXT", "SASL_SSL", "speaks SASL_PLAINTEXT, without TLS", "protocol=SASL_PLAINTEXT"),
        ("PLAINTEXT", "SSL", "speaks PLAINTEXT, without TLS", "protocol=PLAINTEXT"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does not use SASL", "protocol=PLAINTEXT"),
        ("SSL", "SASL_SSL", "does not use SASL", "protocol=SSL"),
        ("MUTUAL", "PLAINTEXT", "speaks TLS", "SSL in the client (SASL_SSL if"),
    ],
)
def test_wrong_port_for_the_protocol(
    node: SecuredListeners, listener: str, client: str, sentence: str, advice: str
) -> None:
    properties = node.properties(client) | {"bootstrap.servers": node.address(listener)}
    found = only_problem(properties)
    assert sentence in found.what
    assert advice in (found.advice or "")


def test_unknown_authority_is_named(node: SecuredListeners, tmp_path: Path) -> None:
    other = Authority.create("Another CA").write_trust_pem(tmp_path / "other.pem")
    found = only_problem(node.properties("SSL", ssl_truststore_location=str(other)))
    assert "signed by CN=Test CA, which this client does not trust" in found.what
    assert "truststore" in (found.advice or "")


def test_names_of_the_certificate_are_shown_if_the_host_is_none_of_them(node: SecuredListeners) -> None:
    properties = node.properties("SSL") | {"bootstrap.servers": f"127.0.0.1:{node.ports['SSL']}"}
    found = only_problem(properties)
    assert "(names: localhost), which does not contain the name 127.0.0.1" in found.what


@pytest.mark.parametrize(
    ("begin", "end", "sentence"),
    [
        (NOW - 9 * DAY, NOW - DAY, f"has expired on {NOW - DAY:%Y-%m-%d}"),
        (NOW + DAY, NOW + 9 * DAY, f"is not yet valid: it begins on {NOW + DAY:%Y-%m-%d}"),
    ],
)
def test_dates_of_the_certificate_are_shown(
    tmp_path: Path, begin: datetime, end: datetime, sentence: str
) -> None:
    authority = Authority.create("Test CA")
    certificate = authority.issue("broker", ["localhost"], not_before=begin, not_after=end)
    with every_listener(tmp_path, certificate, authority) as node:
        assert sentence in only_problem(node.properties("SASL_SSL")).what


def test_missing_client_certificate(node: SecuredListeners) -> None:
    properties = node.properties("SSL") | {"bootstrap.servers": node.address("MUTUAL")}
    found = only_problem(properties)
    assert "requires a client certificate" in found.what
    assert "ssl.keystore.location" in (found.advice or "")


def test_client_certificate_of_another_authority(node: SecuredListeners, tmp_path: Path) -> None:
    store = Authority.create("Another CA").issue("mallory").write_pem(tmp_path / "mallory.pem")
    found = only_problem(node.properties("MUTUAL", ssl_keystore_location=str(store)))
    assert "does not trust the CA of this client's certificate" in found.what


def test_store_that_cannot_be_read(node: SecuredListeners) -> None:
    found = only_problem(node.properties("SSL", ssl_truststore_location="/nowhere/trust.pem"))
    assert "ssl.truststore.location=/nowhere/trust.pem cannot be read" in found.what


def test_mechanism_that_is_not_enabled(tmp_path: Path) -> None:
    enabled = {"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER"}
    with every_listener(tmp_path, config=enabled) as node:
        found = only_problem(node.properties("SASL_PLAINTEXT", "PLAIN"))
    assert "has not enabled the SASL mechanism PLAIN; enabled are SCRAM-SHA-512, OAUTHBEARER" in found.what


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_wrong_password(node: SecuredListeners, mechanism: str) -> None:
    properties = node.properties("SASL_SSL", mechanism)
    properties["sasl.jaas.config"] = jaas(mechanism, "alice", "not-the-word")
    found = only_problem(properties)
    assert f"refused the login with {mechanism}" in found.what
    assert "assword" in (found.advice or "")
    assert "not-the-word" not in f"{found}"


def test_missing_credentials_of_the_client(node: SecuredListeners) -> None:
    found = only_problem(node.properties("SASL_SSL", sasl_jaas_config="org.example.Login required;"))
    assert "needs the login module" in found.what


def test_missing_acl_and_the_command_that_grants_it(node: SecuredListeners, tmp_path: Path) -> None:
    with AdminClient(node.address()) as admin:
        checked(admin.create_topics([NewTopic("orders", partitions=1)]))
    properties = node.properties("SASL_PLAINTEXT", "SCRAM-SHA-256", "bob")
    permissions = (Checked.topic("orders"), Checked.group("billing"))
    problems = [each for each in findings(properties, *permissions) if each.level is Level.PROBLEM]
    assert [each.what for each in problems] == [
        "User:bob may not write to topic orders: WRITE on TOPIC orders is missing.",
        "User:bob may not read from topic orders: READ on TOPIC orders is missing.",
        "User:bob may not join and commit offsets of group billing: READ on GROUP billing is missing.",
    ]
    admin_file = write_properties(
        tmp_path / "admin.properties", node.properties("SASL_PLAINTEXT", user="admin")
    )
    for problem in problems:
        command = (problem.advice or "").partition("kafka-acls ")[2].replace("ADMIN.properties", admin_file)
        granted = run_tool("kafka-acls", *command.replace("'", "").split())
        assert granted.code == 0, granted
    assert {each.level for each in findings(properties, *permissions)} == {Level.GOOD}


def test_principal_of_a_certificate_is_named(node: SecuredListeners) -> None:
    problems = [
        each.what
        for each in findings(node.properties("MUTUAL"), Checked.topic("orders"))
        if each.level is Level.PROBLEM
    ]
    assert problems[0].startswith("User:CN=carol may not write to topic orders")


def test_command_takes_the_properties_file(node: SecuredListeners, tmp_path: Path) -> None:
    file = write_properties(tmp_path / "client.properties", node.properties("SASL_SSL", "SCRAM-SHA-512"))
    done = run_tool("doctor", "--command-config", file, "--topic", "no-such-topic")
    assert done.code == 1
    assert "accepts the login with SCRAM-SHA-512" in done.out
    assert "--allow-principal 'User:alice' --producer --topic 'no-such-topic'" in done.out
