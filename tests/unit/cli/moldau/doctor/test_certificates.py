"""What is wrong with the certificate of a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau.cli.moldau.doctor.certificates import ServerCertificate, describe, explain
from moldau.cli.moldau.doctor.findings import Level
from moldau.client.wire.settings import Address
from moldau.security.tls.authority import Authority

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def certificate(*hosts: str, **dates: datetime) -> ServerCertificate:
    issued = Authority.create("Test CA").issue("broker", hosts, **dates)  # type: ignore[arg-type]
    return ServerCertificate.read(issued.certificate.public_bytes(Encoding.DER))


@pytest.mark.parametrize(
    ("name", "host", "matches"),
    [
        ("kafka.example", "kafka.example", True),
        ("kafka.example", "KAFKA.example.", True),
        ("*.kafka.example", "b1.kafka.example", True),
        ("*.kafka.example", "a.b1.kafka.example", False),
        ("*.kafka.example", "kafka.example", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_names_of_a_certificate(name: str, host: str, matches: bool) -> None:
    assert certificate(name).is_for(host) is matches


def test_certificate_that_expires_soon_is_noted() -> None:
    soon = describe(certificate("h", not_after=NOW + 5 * DAY), Address("h", 1))
    assert soon.level is Level.NOTE
    assert f"expires on {NOW + 5 * DAY:%Y-%m-%d}, in 4 days" in soon.what
    assert describe(certificate("h"), Address("h", 1)).level is Level.GOOD


def test_certificate_without_names() -> None:
    found = explain(certificate(), Address("h", 1), "Hostname mismatch")
    assert "CN=broker (names: none), which does not contain the name h" in found.what


def test_handshake_without_a_certificate() -> None:
    found = explain(None, Address("h", 1), "client and server have no TLS version in common")
    assert "no TLS version in common" in found.what
    assert "ssl.enabled.protocols" in (found.advice or "")
