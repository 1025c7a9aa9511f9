"""Findings about addresses at which a client cannot connect."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.cli.moldau.doctor.diagnosis import diagnose
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.messages.sasl_handshake import SaslHandshakeResponse
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def problems(bootstrap: str, **more: Any) -> list[Finding]:
    found = diagnose(bootstrap, timeout_ms=1000, **more)
    assert all(finding.advice for finding in found if finding.level is Level.PROBLEM)
    return [finding for finding in found if finding.level is Level.PROBLEM]


def only_problem(bootstrap: str, **more: Any) -> str:
    (found,) = problems(bootstrap, **more)
    return found.what


@contextmanager
def server_of_another_protocol(says: bytes) -> Iterator[str]:
    """A server that sends these bytes and does not speak Kafka."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(0.3)
                    try:
                        connection.recv(4096)
                        connection.sendall(says)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_reachable_broker_has_no_problems() -> None:
    with FakeBroker() as broker:
        found = diagnose(broker.bootstrap, timeout_ms=1000)
    assert [finding.level for finding in found] == [Level.GOOD, Level.GOOD]
    assert "is a Kafka broker" in found[0].what
    assert "other machines" in found[1].what


@pytest.mark.parametrize(
    ("bootstrap", "message"),
    [
        ("localhost", "expected host:port"),
        ("no-such-host.invalid:9092", "The name no-such-host.invalid cannot be resolved"),
        ("127.0.0.1:1", "Nothing listens at 127.0.0.1:1"),
    ],
)
def test_addresses_without_a_broker_are_problems(bootstrap: str, message: str) -> None:
    assert message in only_problem(bootstrap)


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is an SSH server"),
        (b"", "does not answer Kafka requests"),
    ],
)
def test_other_protocols_are_recognised(says: bytes, message: str) -> None:
    with server_of_another_protocol(says) as address:
        assert message in only_problem(address)


def test_tls_listener_is_recognised() -> None:
    handshake_failure = b"\x15\x03\x03\x00\x02\x02\x28"
    with server_of_another_protocol(handshake_failure) as address:
        (found,) = problems(address)
    assert "speaks TLS" in found.what
    assert "security.protocol=SSL" in (found.advice or "")


def test_sasl_listener_is_recognised() -> None:
    def handshake(request: Any) -> Message:
        return SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "SCRAM-SHA-256"])

    with FakeBroker({ApiKey.SASL_HANDSHAKE: handshake}) as broker:
        assert "requires SASL authentication (PLAIN, SCRAM-SHA-256)" in only_problem(broker.bootstrap)


def test_controller_listener_is_recognised() -> None:
    with FakeBroker() as broker:
        del broker._answers[ApiKey.METADATA]
        assert "is the listener of a controller" in only_problem(broker.bootstrap)


def test_ssl_client_at_a_plaintext_listener_is_a_problem() -> None:
    with FakeBroker() as broker:
        assert "the client is configured for SSL" in only_problem(
            broker.bootstrap, properties={"security.protocol": "SSL"}
        )


@pytest.mark.parametrize(
    ("advertised", "message"),
    [
        ("0.0.0.0:9092", "a wildcard that no client can connect to"),
        ("kafka-internal.invalid:9092", "cannot be resolved"),
        ("127.0.0.1:1", "Nothing listens at 127.0.0.1:1"),
    ],
)
def test_unreachable_advertised_addresses_are_problems(advertised: str, message: str) -> None:
    with FakeBroker(advertised=advertised) as broker:
        (found,) = problems(broker.bootstrap)
    assert f"Broker 1 advertises {advertised}" in found.what
    assert message in found.what
    assert f"advertised.listeners=PLAINTEXT://{broker.bootstrap}" in (found.advice or "")


def test_advertised_loopback_address_is_a_problem_for_remote_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.cli.moldau.doctor.diagnosis.is_loopback", lambda host: host == "localhost")
    with FakeBroker(advertised="localhost:9092") as broker:
        assert "every client will connect to its own machine" in only_problem(broker.bootstrap)


def test_addresses_of_different_clusters_are_a_problem() -> None:
    with FakeBroker() as other:
        other._answers[ApiKey.METADATA] = lambda _: other.metadata(cluster_id="other")
        with FakeBroker(advertised=other.bootstrap) as broker:
            assert "another cluster answers there (other instead of fake)" in only_problem(broker.bootstrap)
        with FakeBroker() as broker:
            assert "different clusters" in only_problem(f"{broker.bootstrap},{other.bootstrap}")


def test_partitions_without_a_leader_are_a_problem() -> None:
    partition = MetadataResponsePartition(partition_index=3, leader_id=-1)
    topic = MetadataResponseTopic(name="t", partitions=[partition])
    broker = FakeBroker({ApiKey.METADATA: lambda _: broker.metadata(topics=[topic])})
    with broker:
        assert "1 partitions have no leader and cannot be used: t-3" in only_problem(broker.bootstrap)
