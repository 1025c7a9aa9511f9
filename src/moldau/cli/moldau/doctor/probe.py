"""Small questions to an address, layer by layer: does the name resolve, does the port answer, and how?

Each probe has a deadline and never raises; what went wrong is part of the answer.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from enum import Enum, auto

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.settings import Address
from moldau.network.client import NodeConnection
from moldau.network.failures import NotKafka
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class Reached(Enum):
    """How far a client gets at an address."""

    NAME_UNKNOWN = auto()
    REFUSED = auto()
    TIMED_OUT = auto()
    UNREACHABLE = auto()
    TLS = auto()
    NOT_KAFKA = auto()
    SILENT = auto()
    SASL = auto()
    CONTROLLER = auto()
    KAFKA = auto()


@dataclass(slots=True)
class Probe:
    """What was found at an address."""

    address: Address
    reached: Reached
    detail: str = ""
    #: IP addresses the name stands for, and those of them that took the connection.
    resolved: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    #: SASL mechanisms the listener asks for.
    mechanisms: list[str] = field(default_factory=list)
    metadata: MetadataResponse | None = None

    @property
    def port_open(self) -> bool:
        return bool(self.accepted)


async def probe(address: Address, timeout_ms: int) -> Probe:
    """Go as far as possible towards a broker at an address."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return Probe(address, Reached.NAME_UNKNOWN, getattr(error, "strerror", None) or str(error))
    resolved = list(dict.fromkeys(str(info[4][0]) for info in found))
    outcomes = await asyncio.gather(*(_connect(ip, address.port, timeout_ms) for ip in resolved))
    accepted = [ip for ip, outcome in zip(resolved, outcomes, strict=True) if outcome is None]
    if not accepted:
        reached, detail = _worst(outcomes)
        return Probe(address, reached, detail, resolved)
    answer = await _ask(Address(accepted[0], address.port), timeout_ms)
    answer.address, answer.resolved, answer.accepted = address, resolved, accepted
    return answer


async def _connect(host: str, port: int, timeout_ms: int) -> OSError | None:
    """None when the port takes a connection."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return error
    writer.close()
    return None


def _worst(outcomes: list[OSError | None]) -> tuple[Reached, str]:
    """What to say when no IP address took the connection: a closed port says more than a lost packet."""
    errors = [error for error in outcomes if error is not None]
    for error in errors:
        if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
            return Reached.REFUSED, "connection refused"
    for error in errors:
        if not isinstance(error, TimeoutError):
            return Reached.UNREACHABLE, error.strerror or str(error)
    return Reached.TIMED_OUT, "no answer"


async def _ask(address: Address, timeout_ms: int) -> Probe:
    """Speak the Kafka protocol to an open port, and find out why if that does not work."""
    try:
        connection = await NodeConnection.connect(*address, client_id="moldau-doctor", timeout_ms=timeout_ms)
    except NotKafka as error:
        if await _speaks_tls(address, timeout_ms):
            return Probe(address, Reached.TLS)
        return Probe(address, Reached.NOT_KAFKA, error.reason)
    except KafkaError as error:
        if await _speaks_tls(address, timeout_ms):
            return Probe(address, Reached.TLS)
        return Probe(address, Reached.SILENT, str(error))
    try:
        return await _question(connection, address, timeout_ms)
    except KafkaError as error:
        return Probe(address, Reached.SILENT, str(error))
    finally:
        connection.close()


async def _question(connection: NodeConnection, address: Address, timeout_ms: int) -> Probe:
    if not connection.supports(ApiKey.METADATA):
        return Probe(address, Reached.CONTROLLER)
    if connection.supports(ApiKey.SASL_HANDSHAKE):
        # A plain listener answers that this is not the time for it, one with SASL lists its mechanisms.
        handshake: SaslHandshakeResponse = await connection.call(
            SaslHandshakeRequest(mechanism="MOLDAU-DOCTOR"), timeout_ms=timeout_ms
        )
        if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return Probe(address, Reached.SASL, mechanisms=handshake.mechanisms)
        connection = await NodeConnection.connect(*address, client_id="moldau-doctor", timeout_ms=timeout_ms)
    try:
        metadata: MetadataResponse = await connection.call(
            MetadataRequest(topics=None), timeout_ms=timeout_ms
        )
    finally:
        connection.close()
    return Probe(address, Reached.KAFKA, metadata=metadata)


async def _speaks_tls(address: Address, timeout_ms: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, writer = await asyncio.open_connection(*address, ssl=context)
    except ssl.SSLError as error:
        # A broker that wants a client certificate ends the handshake in TLS: that is TLS all the same.
        return "alert" in str(error).lower()
    except OSError:
        return False
    writer.close()
    return True


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0")
