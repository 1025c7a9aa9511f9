"""TLS under attack and with wrong certificates: reasons for the honest, little cost for the others."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import confluent_kafka
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from moldau.base.errors import KafkaError
from moldau.client.wire.security import SecuritySettings
from moldau.network.client import NodeConnection
from moldau.testing import Cluster
from tests.harness.nodes.process import anonymous_memory
from tests.harness.security.certificates import HOSTS, Certificates
from tests.harness.waiting import eventually

LISTENERS = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL"}
HOST = "127.0.0.1"
API_VERSIONS = bytes.fromhex("0000000a0012000000000007ffff")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(certificates: Certificates) -> Iterator[Cluster]:
    """A node that knows clients by their certificates."""
    # With a short accept queue, clients wait for a second when many connect at once.
    config = {**LISTENERS, **certificates.server_properties("requested"), "socket.listen.backlog.size": 3000}
    with Cluster(config=config) as started:
        yield started
        assert "Traceback" not in started.log_file.read_text()


def reason(port: int, properties: dict[str, str], host: str = HOST) -> str:
    """Return why our own client cannot connect."""

    async def connect() -> None:
        connector = SecuritySettings.from_properties(properties).connector()
        connection = await NodeConnection.connect(host, port, connector=connector, timeout_ms=5000)
        connection.close()

    with pytest.raises(KafkaError) as error:
        asyncio.run(connect())
    return str(error.value)


def round_trip(context: ssl.SSLContext, port: int) -> float:
    """Connect, request the API versions, and return how many seconds that took."""
    begin = time.monotonic()
    with (
        socket.create_connection((HOST, port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as secured,
    ):
        secured.sendall(API_VERSIONS)
        assert secured.recv(8)[4:] == bytes.fromhex("00000007")
    return time.monotonic() - begin


def test_an_unknown_authority(cluster: Cluster, tmp_path: Path) -> None:
    strange = Certificates(tmp_path)
    assert "ssl.truststore" in reason(cluster.port, strange.java())


def test_a_name_that_the_certificate_lacks(certificates: Certificates) -> None:
    other = certificates.key_store("elsewhere", ("elsewhere.example",))
    config = {
        **LISTENERS,
        **certificates.server_properties(),
        "ssl.keystore.location": str(other),
    }
    with Cluster(config=config) as cluster:
        assert HOST in reason(cluster.port, certificates.java())
        unchecked = {**certificates.java(), "ssl.endpoint.identification.algorithm": ""}
        connector = SecuritySettings.from_properties(unchecked).connector()

        async def connect() -> None:
            (await NodeConnection.connect(HOST, cluster.port, connector=connector)).close()

        asyncio.run(connect())


def test_an_expired_certificate_of_the_server(certificates: Certificates) -> None:
    now = datetime.now(UTC)
    expired = certificates.authority.issue(
        "server", HOSTS, not_before=now - timedelta(days=2), not_after=now - timedelta(days=1)
    ).write_pem(certificates.folder / "expired-server.pem")
    # A listener that brokers do not use: with an expired certificate they could not connect.
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL,CONTROLLER:PLAINTEXT",
        **certificates.server_properties(),
        "ssl.keystore.location": str(expired),
    }
    with Cluster(config=config) as cluster:
        [port] = [int(each) for each in re.findall(r"'OUTSIDE': (\d+)", cluster.log_file.read_text())]
        assert "expired" in reason(port, certificates.java())


def test_expired_certificates(certificates: Certificates, cluster: Cluster) -> None:
    now = datetime.now(UTC)
    expired = certificates.authority.issue(
        "expired", HOSTS, not_before=now - timedelta(days=2), not_after=now - timedelta(days=1)
    ).write_pem(certificates.folder / "expired.pem")
    properties = certificates.java() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(expired),
    }
    assert "expired" in reason(cluster.port, properties)


def test_a_strange_certificate_of_a_client_is_refused(
    certificates: Certificates, cluster: Cluster, tmp_path: Path
) -> None:
    """With `requested` a client needs no certificate, but one that it shows must be trusted."""
    strange = Certificates(tmp_path)
    context = certificates.python()
    context.load_cert_chain(str(strange.client))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        round_trip(context, cluster.port)
    round_trip(certificates.python(), cluster.port)


@pytest.mark.parametrize("count", [1, 200])
def test_certificates_with_odd_names_do_not_harm(
    certificates: Certificates, cluster: Cluster, count: int
) -> None:
    """An empty name, and a huge one: OpenSSL accepts both, and the node continues."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "x" * 60) for _ in range(count - 1)]
    issued = certificates.authority.issue(x509.Name(parts), ("client",))
    context = certificates.python()
    context.load_cert_chain(str(issued.write_pem(certificates.folder / f"odd-{count}.pem")))
    round_trip(context, cluster.port)


def test_a_huge_chain_of_a_client_is_refused(certificates: Certificates, cluster: Cluster) -> None:
    issued = certificates.issue("huge")
    path = certificates.folder / "huge.pem"
    path.write_text(issued.key_pem() + issued.chain_pem + certificates.ca.read_text() * 400)
    context = certificates.python()
    context.load_cert_chain(str(path))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        round_trip(context, cluster.port)
    round_trip(certificates.python(), cluster.port)


def test_plain_text_on_a_port_with_tls_and_the_reverse(certificates: Certificates, cluster: Cluster) -> None:
    with socket.create_connection((HOST, cluster.port), timeout=20) as plain:
        plain.sendall(API_VERSIONS)
        assert plain.recv(1) == b""
    eventually(lambda: "plain text to a listener with TLS" in cluster.log_file.read_text(), timeout=10)
    with Cluster() as insecure:
        assert "another security.protocol" in reason(insecure.port, certificates.java())


def test_old_versions_are_refused(certificates: Certificates) -> None:
    config = {**LISTENERS, **certificates.server_properties(), "ssl.enabled.protocols": "TLSv1.3"}
    with Cluster(config=config) as cluster:
        context = certificates.python()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            round_trip(context, cluster.port)
        assert "ssl.enabled.protocols" in reason(
            cluster.port, {**certificates.java(), "ssl.enabled.protocols": "TLSv1.2"}
        )


def test_silent_connections_do_not_disturb_a_client(certificates: Certificates, cluster: Cluster) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, **certificates.librdkafka()}
    )
    context = certificates.python()
    round_trip(context, cluster.port)
    memory = anonymous_memory(cluster.pid)
    with ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(socket.create_connection((HOST, cluster.port)))
        half = [stack.enter_context(socket.create_connection((HOST, cluster.port))) for _ in range(600)]
        for each in half:
            each.sendall(bytes.fromhex("16030100"))
        for number in range(20):
            producer.produce("t", str(number))
        assert producer.flush(20) == 0
        assert max(round_trip(context, cluster.port) for _ in range(5)) < 1
        assert anonymous_memory(cluster.pid) - memory < 1100 * 80 * 1024


def test_a_connection_keeps_no_memory_of_a_burst(certificates: Certificates, cluster: Cluster) -> None:
    """Requests and responses of 300 KB each; an idle connection with TLS has about 20 KB."""
    context = certificates.python()
    request = struct.pack(">i", 800) + API_VERSIONS[4:] + bytes(800 - len(API_VERSIONS[4:]))
    with ExitStack() as stack:
        connections = []
        for _ in range(100):
            plain = stack.enter_context(socket.create_connection((HOST, cluster.port), timeout=20))
            connections.append(stack.enter_context(context.wrap_socket(plain, server_hostname=HOST)))
            connections[-1].sendall(request)
            _read_responses(connections[-1], 1)
        before = anonymous_memory(cluster.pid)
        for each in connections:
            each.sendall(request * 400)
        for each in connections:
            _read_responses(each, 400)
        assert anonymous_memory(cluster.pid) - before < len(connections) * 100 * 1024


def _read_responses(connection: ssl.SSLSocket, count: int) -> None:
    for _ in range(count):
        _exactly(connection, struct.unpack(">i", _exactly(connection, 4))[0])


def test_the_number_of_connections_without_a_handshake_is_bounded(
    certificates: Certificates, cluster: Cluster
) -> None:
    context = certificates.python()
    with ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection((HOST, cluster.port), timeout=20))
        known = stack.enter_context(context.wrap_socket(plain, server_hostname=HOST))
        first = [stack.enter_context(socket.create_connection((HOST, cluster.port))) for _ in range(20)]
        for _ in range(2000):
            stack.enter_context(socket.create_connection((HOST, cluster.port)))
        for each in first:
            each.settimeout(20)
            with suppress(ConnectionResetError):
                assert each.recv(1) == b"", "the oldest make room"
        assert round_trip(context, cluster.port) < 5
        known.sendall(API_VERSIONS)
        assert known.recv(4), "a connection after its handshake is kept"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("damaged", range(3), ids=["first flight", "second flight", "requests"])
def test_damaged_flights_end_only_their_connection(
    certificates: Certificates, cluster: Cluster, damaged: int, version: ssl.TLSVersion
) -> None:
    context = certificates.python()
    context.load_cert_chain(str(certificates.client))
    context.maximum_version = version
    randomness = random.Random(f"{damaged} {version}")
    with ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection((HOST, cluster.port), timeout=20))
        known = stack.enter_context(context.wrap_socket(plain, server_hostname=HOST))
        for _ in range(60):
            with suppress(ssl.SSLError, OSError):
                _handshake_with_damage(context, cluster.port, damaged, randomness)
        known.sendall(API_VERSIONS)
        _read_responses(known, 1)
        assert round_trip(context, cluster.port) < 5


def _handshake_with_damage(
    context: ssl.SSLContext, port: int, damaged: int, randomness: random.Random
) -> None:
    """Send flights up to a changed one, the last of them with requests; read until the node closes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with socket.create_connection((HOST, port), timeout=5) as plain:
        for flight in range(10):
            done = _advance(session)
            if done:
                session.write(API_VERSIONS * 20)
            data = bytearray(outgoing.read())
            last = done or flight == damaged
            if data and last:
                _damage(data, randomness)
            plain.sendall(data)
            if last:
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(65536):
                    pass
                return
            received = plain.recv(65536)
            if not received:
                return
            incoming.write(received)


def _advance(session: ssl.SSLObject) -> bool:
    """Continue the handshake; return whether it is complete for the client."""
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _damage(data: bytearray, randomness: random.Random) -> None:
    for _ in range(randomness.randrange(1, 5)):
        position = randomness.randrange(len(data))
        match randomness.randrange(3):
            case 0:
                data[position] = randomness.randrange(256)
            case 1:
                del data[position : position + randomness.randrange(1, 20)]
            case _:
                data[position:position] = randomness.randbytes(randomness.randrange(1, 2000))
        if not data:
            return


def test_a_flood_of_handshakes_leaves_an_open_connection_served(
    certificates: Certificates, cluster: Cluster
) -> None:
    context = certificates.python()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    hello = outgoing.read()
    with ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection((HOST, cluster.port), timeout=20))
        secured = stack.enter_context(context.wrap_socket(plain, server_hostname=HOST))
        flood = [stack.enter_context(socket.create_connection((HOST, cluster.port))) for _ in range(400)]
        for each in flood:
            each.sendall(hello)
        begin = time.monotonic()
        for _ in range(20):
            secured.sendall(API_VERSIONS)
            size = struct.unpack(">i", _exactly(secured, 4))[0]
            _exactly(secured, size)
        assert (time.monotonic() - begin) / 20 < 0.2


def _exactly(connection: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = connection.recv(size - len(data))
        assert received
        data += received
    return data
