"""Java's clients with every mechanism and every store, against both brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.security.client_settings import WAYS, Way, java_settings, write_java_settings
from tests.harness.security.login import open_prefix
from tests.harness.security.secured_node import SecuredNode
from tests.interop.java_oracle import ask_java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def _run(node: SecuredNode, folder: Path, clients: dict[str, dict[str, str]], prefix: str) -> dict[str, str]:
    lines = []
    for number, (name, settings) in enumerate(clients.items()):
        file = write_java_settings(folder / f"{number}.properties", settings)
        lines.append(f"{name}\t{file}\t{prefix}{number}")
    return dict(ask_java("SecuredClients", lines))


def test_java_clients_produce_and_consume_with_every_mechanism_and_store(
    secured: SecuredNode, tmp_path: Path
) -> None:
    clients = {str(way): java_settings(secured, way) for way in WAYS}
    results = _run(secured, tmp_path, clients, open_prefix(secured))
    assert results == dict.fromkeys(clients, "OK")


def test_java_clients_report_the_same_failures_as_with_apache_kafka(
    secured_apache: SecuredNode, secured_moldau: SecuredNode, tmp_path: Path
) -> None:
    results = []
    for number, node in enumerate((secured_apache, secured_moldau)):
        folder = tmp_path / str(number)
        folder.mkdir()
        clients = {
            f"{mechanism}, {user}": java_settings(node, Way("SASL_SSL", mechanism), user, "wrong")
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
            for user in ("alice", "mallory")
        }
        clients["no ACL"] = java_settings(node, Way("SASL_SSL", "PLAIN"), "eve")
        clients["no certificate"] = _without_key(java_settings(node, Way("PKCS12")))
        clients["unknown authority"] = _without_trust(java_settings(node, Way("PEM")))
        results.append(_run(node, folder, clients, "closed-"))
    assert results[1] == results[0]
    assert "OK" not in results[0].values()


def _without_key(settings: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if "key" not in name}


def _without_trust(settings: dict[str, str]) -> dict[str, str]:
    """Use the JVM's own authorities."""
    return {name: value for name, value in settings.items() if "truststore" not in name}
