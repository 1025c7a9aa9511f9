"""Probe an address layer by layer: name resolution, TCP connection, TLS, SASL login, metadata.

Every step has a timeout. A probe never raises; a failure is part of its result.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from dataclasses import dataclass, field
from enum import Enum, auto

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.moldau.doctor.listener import CLIENT_ID, Listener, detect
from moldau.client.wire.settings import Address
from moldau.network.client import NodeConnection
from moldau.network.connector import Connector
from moldau.network.failures import NotKafka, TlsFailed
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse


class Reached(Enum):
    """The last step that a client reaches at an address."""

    NAME_UNKNOWN = auto()
    REFUSED = auto()
    TIMED_OUT = auto()
    UNREACHABLE = auto()
    NOT_KAFKA = auto()
    SILENT = auto()
    CONTROLLER = auto()
    #: The listener has another security protocol than the client.
    OTHER_PROTOCOL = auto()
    #: A store or the credentials of the client cannot be used.
    INVALID_CLIENT = auto()
    TLS_FAILED = auto()
    LOGIN_FAILED = auto()
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
    listener: Listener | None = None
    #: The error of the client, which could not connect although it has the protocol of the listener.
    failure: KafkaError | None = None
    metadata: MetadataResponse | None = None

    @property
    def port_open(self) -> bool:
        return bool(self.accepted)


async def probe(address: Address, connector: Connector, timeout_ms: int) -> Probe:
    """Connect to an address as the client does and request metadata; return how far that went."""
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
    result = await _probe_listener(address, accepted[0], connector, timeout_ms)
    result.resolved, result.accepted = resolved, accepted
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
    """Choose the error to report if no connection was accepted: a refusal is more specific than a timeout."""
    errors = [error for error in outcomes if error is not None]
    for error in errors:
        if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
            return Reached.REFUSED, "connection refused"
    for error in errors:
        if not isinstance(error, TimeoutError):
            return Reached.UNREACHABLE, error.strerror or str(error)
    return Reached.TIMED_OUT, "no answer"


async def _probe_listener(address: Address, ip: str, connector: Connector, timeout_ms: int) -> Probe:
    """Find out what an open port speaks; connect as the client does if that is the client's protocol."""
    try:
        listener = await detect(Address(ip, address.port), timeout_ms)
    except NotKafka as error:
        return Probe(address, Reached.NOT_KAFKA, error.reason)
    except KafkaError as error:
        return Probe(address, Reached.SILENT, str(error))
    if listener.is_controller:
        return Probe(address, Reached.CONTROLLER, listener=listener)
    wanted = connector.security.protocol
    unknown = listener.requires_certificate and wanted in ("SSL", "SASL_SSL")
    if listener.protocol != wanted and not unknown:
        return Probe(address, Reached.OTHER_PROTOCOL, wanted, listener=listener)
    return await _probe_client(address, listener, connector, timeout_ms)


async def _probe_client(address: Address, listener: Listener, connector: Connector, timeout_ms: int) -> Probe:
    try:
        connection = await NodeConnection.connect(
            *address, client_id=CLIENT_ID, timeout_ms=timeout_ms, connector=connector
        )
        try:
            request = MetadataRequest(topics=None)
            metadata: MetadataResponse = await connection.call(request, timeout_ms=timeout_ms)
        finally:
            connection.close()
    except KafkaError as error:
        return Probe(address, _failed_step(error), str(error), listener=listener, failure=error)
    return Probe(address, Reached.KAFKA, listener=listener, metadata=metadata)


_LOGIN_CODES = (
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ErrorCode.ILLEGAL_SASL_STATE,
)


def _failed_step(error: KafkaError) -> Reached:
    if isinstance(error, TlsFailed):
        return Reached.TLS_FAILED
    if error.code is ErrorCode.INVALID_CONFIG:
        return Reached.INVALID_CLIENT
    return Reached.LOGIN_FAILED if error.code in _LOGIN_CODES else Reached.SILENT


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0")
