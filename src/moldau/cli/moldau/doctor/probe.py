"""Probe an address layer by layer: name resolution, TCP connection, TLS or Kafka protocol, metadata.

Every step has a timeout. A probe never raises; a failure is part of its result.
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
    """The last step that a client reaches at an address."""

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
    """The result of probing an address."""

    address: Address
    reached: Reached
    detail: str = ""
    #: IP addresses that the name resolves to, and those that accepted a connection.
    resolved: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    #: SASL mechanisms that the listener supports.
    mechanisms: list[str] = field(default_factory=list)
    metadata: MetadataResponse | None = None

    @property
    def port_open(self) -> bool:
        return bool(self.accepted)


async def probe(address: Address, timeout_ms: int) -> Probe:
    """Connect to an address and request metadata; return how far that went."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return Probe(address, Reached.NAME_UNKNOWN, getattr(error, "strerror", None) or str(error))
    resolved = list(dict.fromkeys(str(info[4][0]) for info in found))
    outcomes = await asyncio.gather(*(_connect(ip, address.port, timeout_ms) for ip in resolved))
    accepted = [ip for ip, outcome in zip(resolved, outcomes, strict=True) if outcome is None]
    if not accepted:
        reached, detail = _most_telling(outcomes)
        return Probe(address, reached, detail, resolved)
    result = await _probe_protocol(Address(accepted[0], address.port), timeout_ms)
    result.address, result.resolved, result.accepted = address, resolved, accepted
    return result


async def _connect(host: str, port: int, timeout_ms: int) -> OSError | None:
    """Return None if the port accepts a connection, the error otherwise."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return error
    writer.close()
    return None


def _most_telling(outcomes: list[OSError | None]) -> tuple[Reached, str]:
    """Choose the error to report if no connection was accepted: a refusal says more than a timeout."""
    errors = [error for error in outcomes if error is not None]
    for error in errors:
        if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
            return Reached.REFUSED, "connection refused"
    for error in errors:
        if not isinstance(error, TimeoutError):
            return Reached.UNREACHABLE, error.strerror or str(error)
    return Reached.TIMED_OUT, "no answer"


async def _probe_protocol(address: Address, timeout_ms: int) -> Probe:
    """Send Kafka requests to an open port; if they fail, find out whether it speaks TLS."""
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
        return await _probe_broker(connection, address, timeout_ms)
    except KafkaError as error:
        return Probe(address, Reached.SILENT, str(error))
    finally:
        connection.close()


async def _probe_broker(connection: NodeConnection, address: Address, timeout_ms: int) -> Probe:
    if not connection.supports(ApiKey.METADATA):
        return Probe(address, Reached.CONTROLLER)
    if connection.supports(ApiKey.SASL_HANDSHAKE):
        # A PLAINTEXT listener answers ILLEGAL_SASL_STATE; a SASL listener lists its mechanisms.
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
        # A broker that requires a client certificate rejects the handshake with a TLS alert.
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
