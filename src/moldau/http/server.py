"""HTTP listeners on uvicorn's protocol, in the event loop of the caller.

Ports are bound first and opened when the service is ready: a second process fails at once with a clear
message, and a client is refused instead of waiting for a service that is still reading its state. uvicorn's
own `Server` is not used, because it installs signal handlers and polls.

A listener whose key store has changed listens again on the same socket, with the new context: connections
wait for it in the backlog, and open ones are not affected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.http.asgi import Application, Scope
from moldau.http.authentication.authenticator import Authenticator
from moldau.http.cors import Cors
from moldau.http.middleware import ServiceMiddleware
from moldau.http.protocol import BoundedProtocol
from moldau.http.settings import HttpListener, HttpSettings
from moldau.security.tls.mapping_rules import PrincipalMapping

if TYPE_CHECKING:
    from moldau.http.tls import ServerTls

logger = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_DATE_INTERVAL_S: Final = 1.0
#: How often the files of certificates are checked.
_TLS_CHECK_S: Final = 1.0
#: Checks for finished connections at shutdown.
_POLL_S: Final = 0.01


class HttpServer:
    """The listeners of one service. `bind`, then `open`, then `close`."""

    def __init__(self, settings: HttpSettings, clock: Clock) -> None:
        properties = settings.properties
        self._settings = settings
        self._authenticator = Authenticator.from_properties(properties, clock)
        self._cors = Cors.from_properties(properties)
        self._mapping = PrincipalMapping(
            settings.tls_property("ssl.principal.mapping.rules")
            or properties.get("auth.ssl.principal.mapping.rules")
        )
        self._tls = _server_tls(settings) if settings.tls else None
        self._sockets: list[tuple[HttpListener, socket.socket]] = []
        self._servers: dict[HttpListener, asyncio.Server] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._state = ServerState()
        self._ticking: asyncio.TimerHandle | None = None

    @property
    def urls(self) -> list[str]:
        """The URLs of the listeners; a port 0 is replaced by the chosen one."""
        return [each._replace(port=bound.getsockname()[1]).url for each, bound in self._sockets]

    def bind(self) -> None:
        """Bind the ports without listening; `KafkaError` if one is taken."""
        for listener in self._settings.listeners:
            self._sockets.append((listener, _bound(listener)))

    async def open(self, application: Application, is_signed: Callable[[Scope], bool] | None = None) -> None:
        """Serve the application on the bound ports; see `ServiceMiddleware` for `is_signed`."""
        config = Config(
            ServiceMiddleware(application, self._authenticator, self._cors, is_signed),
            http=BoundedProtocol,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=max(1, self._settings.idle_timeout_ms // 1000),
        )
        config.load()

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(
                config,
                self._state,
                max_connections=self._settings.max_connections,
                mapping=self._mapping,
            )

        self._update_date()
        for listener, bound in self._sockets:
            self._servers[listener] = await self._listen(listener, bound, protocol)
        if self._tls is not None:
            self._renewing = asyncio.create_task(self._renew(self._tls, protocol))

    async def _listen(
        self, listener: HttpListener, bound: socket.socket, protocol: Callable[[], BoundedProtocol]
    ) -> asyncio.Server:
        try:
            own = bound.dup()
            own.setblocking(False)
            return await asyncio.get_running_loop().create_server(
                protocol, sock=own, backlog=_BACKLOG, **self._tls_options(listener)
            )
        except OSError as error:
            # Another process has bound the same port and was ready first.
            raise _cannot_listen(listener, error) from None

    async def _renew(self, tls: ServerTls, protocol: Callable[[], BoundedProtocol]) -> None:
        """Listen with new certificates whenever their files have changed."""
        is_due = False
        while True:
            await asyncio.sleep(_TLS_CHECK_S)
            is_due = await tls.renew() or is_due
            if not is_due:
                continue
            try:
                for listener, bound in self._sockets:
                    if listener.tls:
                        old = self._servers[listener]
                        self._servers[listener] = await self._listen(listener, bound, protocol)
                        old.close()
                is_due = False
            except KafkaError as error:
                logger.error(
                    "Changed certificates are not used yet: %s",
                    error.message,
                    extra=event("certificates.refused"),
                )

    async def close(self) -> None:
        """Stop listening, let running requests finish within `shutdown.graceful.ms`, close connections."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        for server in self._servers.values():
            server.close()
        for _, bound in self._sockets:
            bound.close()
        if self._ticking is not None:
            self._ticking.cancel()
        for connection in list(self._state.connections):
            connection.shutdown()
        deadline = time.monotonic() + self._settings.shutdown_timeout_ms / 1000
        while self._state.tasks and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_S)
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
        for connection in list(self._state.connections):
            connection.transport.abort()

    def _tls_options(self, listener: HttpListener) -> dict[str, Any]:
        """Return the options of a listener with TLS: a handshake is bounded as a request is."""
        if self._tls is None or not listener.tls:
            return {}
        timeout_s = max(1.0, self._settings.idle_timeout_ms / 1000)
        return {
            "ssl": self._tls.context,
            "ssl_handshake_timeout": timeout_s,
            "ssl_shutdown_timeout": timeout_s,
        }

    def _update_date(self) -> None:
        """Set the Date header of responses, once a second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode("ascii"))]
        self._ticking = asyncio.get_running_loop().call_later(_DATE_INTERVAL_S, self._update_date)


def _server_tls(settings: HttpSettings) -> ServerTls:
    from moldau.http.tls import ServerTls

    return ServerTls(settings)


def _bound(listener: HttpListener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listener.host, listener.port))
    except OSError as error:
        bound.close()
        raise _cannot_listen(listener, error) from None
    bound.setblocking(False)
    return bound


def _cannot_listen(listener: HttpListener, error: OSError) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG, f"Cannot listen on {listener.url}: {error.strerror or error}."
    )
