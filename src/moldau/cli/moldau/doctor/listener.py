"""Find out what a listener speaks: its security protocol, SASL mechanisms and certificate.

The listener is asked without credentials, first in plain text and then over TLS without verification, so the
result does not depend on the settings of the client.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.settings import Address
from moldau.network.client import NodeConnection
from moldau.network.connector import PLAINTEXT, ClientSecurity, Connector
from moldau.network.failures import NotKafka
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

CLIENT_ID = "moldau-doctor"
#: A mechanism that no listener has enabled: the refusal lists the enabled ones.
_NO_MECHANISM = "MOLDAU-DOCTOR"


@dataclass(frozen=True, slots=True)
class Listener:
    protocol: str
    #: The enabled SASL mechanisms.
    mechanisms: tuple[str, ...] = ()
    #: In DER; None without TLS, or if the server did not show one.
    certificate: bytes | None = None
    #: Whether a TLS connection without a client certificate is refused.
    requires_certificate: bool = False
    is_controller: bool = False

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("SASL_")


async def detect(address: Address, timeout_ms: int) -> Listener:
    """Return what the listener speaks; `KafkaError` if it speaks neither Kafka's protocol nor TLS."""
    try:
        return await _ask(address, PLAINTEXT, timeout_ms)
    except KafkaError as error:
        secured = await _detect_tls(address, timeout_ms)
        if secured is not None:
            return secured
        raise error


async def _detect_tls(address: Address, timeout_ms: int) -> Listener | None:
    """Return what the listener speaks over TLS; None if it does not speak TLS."""
    context = unverified_context()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, writer = await asyncio.open_connection(*address, ssl=context)
    except ssl.SSLError as error:
        # A broker that requires a client certificate rejects the handshake with a TLS alert.
        refused = "alert" in str(error).lower()
        return Listener("SSL", requires_certificate=True) if refused else None
    except OSError:
        return None
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    try:
        found = await _ask(address, Connector(security=ClientSecurity(tls=lambda: context)), timeout_ms)
    except NotKafka:
        raise
    except KafkaError:
        return Listener("SSL", certificate=certificate, requires_certificate=True)
    return replace(found, certificate=certificate)


async def _ask(address: Address, connector: Connector, timeout_ms: int) -> Listener:
    connection = await NodeConnection.connect(
        *address, client_id=CLIENT_ID, timeout_ms=timeout_ms, connector=connector
    )
    try:
        controller = not connection.supports(ApiKey.METADATA)
        mechanisms = await _mechanisms(connection, timeout_ms)
    finally:
        connection.close()
    if mechanisms is None:
        return Listener(connector.security.protocol, is_controller=controller)
    return Listener(f"SASL_{_transport(connector)}", mechanisms, is_controller=controller)


async def _mechanisms(connection: NodeConnection, timeout_ms: int) -> tuple[str, ...] | None:
    """Return the enabled mechanisms; None if the listener does not use SASL (ILLEGAL_SASL_STATE)."""
    if not connection.supports(ApiKey.SASL_HANDSHAKE):
        return None
    request = SaslHandshakeRequest(mechanism=_NO_MECHANISM)
    answer: SaslHandshakeResponse = await connection.call(request, timeout_ms=timeout_ms)
    refused = answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    return tuple(answer.mechanisms) if refused else None


def _transport(connector: Connector) -> str:
    return "PLAINTEXT" if connector.security.tls is None else "SSL"


def unverified_context() -> ssl.SSLContext:
    """Return a context that accepts any certificate: nothing secret is sent over its connections."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
