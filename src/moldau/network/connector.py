"""How connections to other nodes are opened: TCP, then TLS, then SASL.

A `Connector` is shared by all connections for one purpose (to brokers, to controllers, of a client). The TLS
context and the SASL exchange are created for each connection, so that new certificates and tokens take
effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moldau.security.sasl.mechanism import SaslClient

if TYPE_CHECKING:
    from ssl import SSLContext, SSLObject

#: Opens a connection as `loop.create_connection` does.
OpenConnection = Callable[[Callable[[], asyncio.BufferedProtocol], str, int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class SaslLogin:
    mechanism: str
    #: Begins an exchange with the host of this name; `blocking` exchanges run outside the loop.
    begin: Callable[[str], SaslClient] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The security of one end of connections: None for `tls` or `sasl` means without."""

    tls: Callable[[], SSLContext] | None = None
    sasl: SaslLogin | None = None

    @property
    def protocol(self) -> str:
        """The `security.protocol` of the connections."""
        if self.sasl is None:
            return "PLAINTEXT" if self.tls is None else "SSL"
        return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"


@dataclass(frozen=True, slots=True)
class Connector:
    #: None: as the event loop does.
    open_connection: OpenConnection | None = None
    security: ClientSecurity = ClientSecurity()

    def without_login(self) -> Connector:
        """Return a connector for connections that only check whether a node responds."""
        return replace(self, security=ClientSecurity(tls=self.security.tls))

    async def open(
        self,
        channel: asyncio.BufferedProtocol,
        host: str,
        port: int,
        on_handshake: Callable[[SSLObject], None],
        timeout_seconds: float,
    ) -> None:
        """Connect `channel` to the node; with TLS, `on_handshake` is called when data can be sent."""
        loop = asyncio.get_running_loop()
        open_connection = self.open_connection or loop.create_connection
        if self.security.tls is None:
            await open_connection(lambda: channel, host, port)
            return
        from moldau.network.tls import TlsLayer

        layer = TlsLayer(
            channel,
            self.security.tls(),
            server_side=False,
            server_hostname=host,
            handshake_timeout=timeout_seconds,
            loop=loop,
            on_handshake=on_handshake,
        )
        await open_connection(lambda: layer, host, port)


#: Without TLS and SASL, over the event loop's network.
PLAINTEXT: Final = Connector()
