"""TLS of the listeners: one context for the clients of a listener, one for connections to other nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moldau.config.broker.config import BrokerConfig
from moldau.network.connection import Connection
from moldau.network.handshakes import Handshakes

if TYPE_CHECKING:
    from ssl import SSLContext

    from moldau.security.tls.settings import TlsSettings

SECURED = ("SSL", "SASL_SSL")
_HANDSHAKE_SECONDS = 30.0


class ListenerTls:
    """The TLS contexts of one listener. A connection takes the contexts that are current when it begins."""

    def __init__(self, settings: TlsSettings, handshakes: Handshakes) -> None:
        self._settings = settings
        self._handshakes = handshakes
        self._server: SSLContext | None = None
        self._client: SSLContext | None = None

    def server(self) -> SSLContext:
        from moldau.security.tls.context import server_context

        if self._server is None:
            self._server = server_context(self._settings)
        return self._server

    def client(self) -> SSLContext:
        from moldau.security.tls.context import client_context

        if self._client is None:
            self._client = client_context(self._settings)
        return self._client

    @property
    def settings(self) -> TlsSettings:
        return self._settings

    def wrap(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> asyncio.BufferedProtocol:
        from moldau.network.tls import TlsLayer

        return TlsLayer(
            connection,
            self.server(),
            server_side=True,
            handshake_timeout=_HANDSHAKE_SECONDS,
            loop=loop,
            handshakes=self._handshakes,
        )


class NodeTls:
    """The TLS of all listeners of a node, by name."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._handshakes = Handshakes()
        self._listeners: dict[str, ListenerTls] = {}

    def load(self) -> None:
        """Read the stores of this node's listeners; `ConfigError` if one cannot be used."""
        for endpoint in self._config.listeners:
            listener = self.of(endpoint.name)
            if listener is not None:
                listener.server()

    def of(self, name: str) -> ListenerTls | None:
        """Return the TLS of a listener, of this node or one that only other nodes have; None without TLS."""
        protocol = self._config.protocol_map.get(name, "")
        if protocol not in SECURED:
            return None
        if name not in self._listeners:
            self._listeners[name] = ListenerTls(_settings(self._config, name, protocol), self._handshakes)
        return self._listeners[name]


def _settings(config: BrokerConfig, name: str, protocol: str) -> TlsSettings:
    from moldau.security.tls.settings import TlsSettings

    def get(config_name: str) -> Any:
        own = f"listener.name.{name.lower()}.{config_name}"
        if config_name == "ssl.client.auth" and protocol == "SASL_SSL" and own not in config.texts:
            # As in Kafka: SASL clients show no certificate unless the listener itself asks for it.
            return "none"
        return config.for_listener(name, config_name)

    return TlsSettings.of(get)
