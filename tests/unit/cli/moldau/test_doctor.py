"""`moldau doctor` and the ways in which a client can fail to connect."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.cli.main import main
from moldau.cli.moldau.doctor.diagnosis import Finding, Level, diagnose
from moldau.cli.moldau.doctor.probe import is_loopback, is_wildcard
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
def stranger(says: bytes) -> Iterator[str]:
    """A port where someone says something that is not Kafka."""
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


def test_all_is_well() -> None:
    with FakeBroker() as broker:
        found = diagnose(broker.bootstrap, timeout_ms=1000)
    assert [finding.level for finding in found] == [Level.GOOD, Level.GOOD]
    assert "is a Kafka broker" in found[0].what
    assert "other machines" in found[1].what


@pytest.mark.parametrize(
    ("bootstrap", "sentence"),
    [
        ("localhost", "expected host:port"),
        ("no-such-host.invalid:9092", "The name no-such-host.invalid cannot be resolved"),
        ("127.0.0.1:1", "Nothing listens at 127.0.0.1:1"),
    ],
)
def test_addresses_without_a_broker(bootstrap: str, sentence: str) -> None:
    assert sentence in only_problem(bootstrap)


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is an SSH server"),
        (b"", "does not speak Kafka in plain text"),
    ],
)
def test_strangers(says: bytes, sentence: str) -> None:
    with stranger(says) as address:
        assert sentence in only_problem(address)


def test_a_tls_listener() -> None:
    handshake_failure = b"\x15\x03\x03\x00\x02\x02\x28"
    with stranger(handshake_failure) as address:
        (found,) = problems(address)
    assert "speaks TLS" in found.what
    assert "security.protocol=SSL" in (found.advice or "")


def test_a_listener_that_wants_a_login() -> None:
    def handshake(request: Any) -> Message:
        return SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "SCRAM-SHA-256"])

    with FakeBroker({17: handshake}) as broker:
        assert "asks for a login with SASL (PLAIN, SCRAM-SHA-256)" in only_problem(broker.bootstrap)


def test_a_controller_listener() -> None:
    with FakeBroker() as broker:
        del broker._answers[3]
        assert "is the listener of a controller" in only_problem(broker.bootstrap)


def test_a_client_set_to_tls_at_a_plain_listener() -> None:
    with FakeBroker() as broker:
        assert "the client is set to SSL" in only_problem(broker.bootstrap, security_protocol="SSL")


@pytest.mark.parametrize(
    ("advertised", "sentence"),
    [
        ("0.0.0.0:9092", "which is no address a client could use"),
        ("kafka-internal.invalid:9092", "cannot be resolved"),
        ("127.0.0.1:1", "Nothing listens at 127.0.0.1:1"),
    ],
)
def test_advertised_addresses_that_do_not_work(advertised: str, sentence: str) -> None:
    with FakeBroker(advertised=advertised) as broker:
        (found,) = problems(broker.bootstrap)
    assert f"Broker 1 advertises {advertised}" in found.what
    assert sentence in found.what
    assert f"advertised.listeners=PLAINTEXT://{broker.bootstrap}" in (found.advice or "")


def test_localhost_advertised_to_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.cli.moldau.doctor.diagnosis.is_loopback", lambda host: host == "localhost")
    with FakeBroker(advertised="localhost:9092") as broker:
        assert "every client is sent to its own machine" in only_problem(broker.bootstrap)


def test_an_address_that_leads_to_another_cluster() -> None:
    with FakeBroker() as other:
        other._answers[3] = lambda _: other.metadata(cluster_id="other")
        with FakeBroker(advertised=other.bootstrap) as broker:
            assert "another cluster answers there (other instead of fake)" in only_problem(broker.bootstrap)
        with FakeBroker() as broker:
            assert "different clusters" in only_problem(f"{broker.bootstrap},{other.bootstrap}")


def test_partitions_without_a_leader() -> None:
    partition = MetadataResponsePartition(partition_index=3, leader_id=-1)
    topic = MetadataResponseTopic(name="t", partitions=[partition])
    broker = FakeBroker({3: lambda _: broker.metadata(topics=[topic])})
    with broker:
        assert "1 partitions have no leader and cannot be used: t-3" in only_problem(broker.bootstrap)


def test_kinds_of_addresses() -> None:
    assert is_loopback("localhost")
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert not is_loopback("example.org")
    assert is_wildcard("::")
    assert not is_wildcard("10.0.0.1")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        assert main(["doctor", "--bootstrap-server", broker.bootstrap]) == 0
    assert "Clients on this machine can use this cluster." in capsys.readouterr().out
    assert main(["doctor", "--bootstrap-server", "127.0.0.1:1", "--timeout-ms", "500"]) == 1
    shown = capsys.readouterr().out
    assert "1 problem found." in shown
    assert "-> Is the broker running" in shown


def test_the_command_reads_the_clients_file(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    with FakeBroker() as broker:
        file.write_text(f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SSL\n")
        assert main(["doctor", "--command-config", str(file)]) == 1
    assert "the client is set to SSL" in capsys.readouterr().out
    assert main(["doctor", "--command-config", str(tmp_path / "missing")]) == 1
    assert "Unable to read file" in capsys.readouterr().err
