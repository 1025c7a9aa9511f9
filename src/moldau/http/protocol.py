"""uvicorn's HTTP protocol with bounds, and with the principal of the client's certificate.

Added to uvicorn: at most `max_connections` connections, a limit for the size of request headers, a timeout
for connections that send no request or not all of its headers, and `scope["moldau.principal"]`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from moldau.base.json_log import event
from moldau.http.asgi import PRINCIPAL
from moldau.security.principal import ANONYMOUS
from moldau.security.tls.mapping_rules import NoMatchingRule, PrincipalMapping
from moldau.security.tls.names import peer_principal

logger = logging.getLogger(__name__)

_MAX_HEADER_BYTES: Final = 64 * 1024
_HEADERS_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        *,
        max_connections: int,
        mapping: PrincipalMapping,
    ) -> None:
        super().__init__(config, server_state, app_state={}, _loop=asyncio.get_running_loop())
        self._max_connections = max_connections
        self._mapping = mapping
        self._principal = ANONYMOUS
        self._header_bytes = 0
        #: Runs while the headers of a request are incomplete.
        self._header_timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            logger.warning(
                "Connection refused: %d connections are open",
                len(self.connections) - 1,
                extra=event("connection.refused"),
            )
            transport.abort()
            return
        try:
            self._principal = peer_principal(transport.get_extra_info("ssl_object"), self._mapping)
        except NoMatchingRule as error:
            logger.warning("Connection refused: %s", error, extra=event("connection.refused"))
            transport.abort()
            return
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        scope: Any = self.scope
        if scope is None or "method" not in scope:
            self._receive_part(len(data))
        elif self._header_bytes:
            self._end_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_headers()
        super().connection_lost(exc)

    def _receive_part(self, size: int) -> None:
        """Bound the headers of a request in size and time; a client that sends them at once pays nothing."""
        self._header_bytes += size
        if self.transport.is_closing():
            return
        if self._header_bytes > _MAX_HEADER_BYTES:
            self.transport.write(_HEADERS_TOO_LARGE)
            self.transport.close()
        elif self._header_timeout is None:
            self._header_timeout = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _end_headers(self) -> None:
        self._header_bytes = 0
        if self._header_timeout is not None:
            self._header_timeout.cancel()
            self._header_timeout = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        scope[PRINCIPAL] = self._principal
