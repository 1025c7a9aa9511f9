"""TLS of the listeners: the contexts of each listener, and their replacement while the node runs.

A connection takes the contexts that are current when it begins; open connections keep theirs. Contexts are
replaced when a dynamic config changes and when a store file changes. Files are read in the pool. A change
that cannot be used is refused before it is stored (`NodeTls.check`); if a file cannot be used, the reason is
logged and the old contexts stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.network.connection import Connection
from moldau.network.handshakes import Handshakes
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome

if TYPE_CHECKING:
    from ssl import SSLContext, SSLObject

    from moldau.security.tls.settings import Stamps, TlsSettings

logger = logging.getLogger(__name__)

SECURED = ("SSL", "SASL_SSL")
_HANDSHAKE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Loaded:
    """TLS contexts that were created from settings and files, with the stamps of the files."""

    settings: TlsSettings
    stamps: Stamps
    client: SSLContext
    #: None for a listener that only other nodes have.
    server: SSLContext | None = None
    #: The server's certificate, in DER.
    certificate: bytes | None = None

    @property
    def is_current(self) -> bool:
        return self.stamps == self.settings.stamps()


class ListenerTls:
    """The TLS contexts of one listener, of this node or only of others."""

    def __init__(self, name: str, handshakes: Handshakes, config: BrokerConfig, logins: LoginCounts) -> None:
        self._name = name
        self._logins = logins
        self._handshakes = handshakes
        self._config = config
        self._loaded: _Loaded | None = None
        #: The error of the last change, so that each failure is logged once.
        self._failure = ""

    def server(self) -> SSLContext:
        context = self._current().server
        if context is None:
            raise ConfigError(f"{self._name} is not a listener of this node.")
        return context

    def client(self) -> SSLContext:
        return self._current().client

    def wrap(
        self, connection: Connection, loop: asyncio.AbstractEventLoop, on_secured: Callable[[], None]
    ) -> asyncio.BufferedProtocol:
        from moldau.network.tls import TlsLayer

        def secured(_: SSLObject) -> None:
            self._logins.add(self._name, LoginOutcome.SECURED)
            on_secured()

        return TlsLayer(
            connection,
            self.server(),
            server_side=True,
            handshake_timeout=_HANDSHAKE_SECONDS,
            loop=loop,
            on_handshake=secured,
            on_failure=lambda: self._logins.add(self._name, LoginOutcome.HANDSHAKE_FAILED),
            handshakes=self._handshakes,
        )

    def check(self, config: BrokerConfig) -> None:
        """Raise `ConfigError` if the contexts cannot be replaced by those of `config`; may read files."""
        self._renewed(config)

    async def apply(self, config: BrokerConfig, pool: Pool) -> None:
        """Replace the contexts if settings or files have changed; log the reason if that is impossible."""
        self._config = config
        try:
            loaded = await pool.run(self._renewed, config)
        except ConfigError as error:
            if error.sentence != self._failure:
                self._failure = error.sentence
                logger.error(
                    "listener %s keeps its certificates: %s",
                    self._name,
                    error.sentence,
                    extra=event("certificates.refused", listener=self._name),
                )
            return
        self._failure = ""
        if loaded is not self._loaded:
            self._loaded = loaded
            logger.info(
                "listener %s uses new certificates for new connections",
                self._name,
                extra=event("certificates.replaced", listener=self._name),
            )

    async def refresh(self, pool: Pool) -> None:
        """Apply changes of the files."""
        if self._loaded is not None and not await pool.run(lambda: self._is_current()):
            await self.apply(self._config, pool)

    def _is_current(self) -> bool:
        return self._loaded is None or self._loaded.is_current

    def _current(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = self._load(self._config, tls_settings(self._config, self._name))
        return self._loaded

    def _renewed(self, config: BrokerConfig) -> _Loaded:
        """Return what is loaded if it is current, else what takes its place."""
        settings, old = tls_settings(config, self._name), self._loaded
        if old is not None and old.settings == settings and old.is_current:
            return old
        new = self._load(config, settings)
        if old is not None and old.certificate is not None and new.certificate is not None:
            self._check_replacement(config, old, new)
        return new

    def _check_replacement(self, config: BrokerConfig, old: _Loaded, new: _Loaded) -> None:
        from moldau.security.tls.verification import check_replacement

        if old.certificate and new.certificate and old.certificate != new.certificate:
            check_replacement(
                old.certificate,
                new.certificate,
                allow_dn_changes=config.for_listener(self._name, "ssl.allow.dn.changes"),
                allow_san_changes=config.for_listener(self._name, "ssl.allow.san.changes"),
            )

    def _load(self, config: BrokerConfig, settings: TlsSettings) -> _Loaded:
        from moldau.security.tls.context import client_context, server_context
        from moldau.security.tls.stores.files import load_key
        from moldau.security.tls.verification import check_handshake

        # Before the files are read: a change in between is detected later.
        stamps = settings.stamps()
        try:
            client = client_context(settings)
            if all(endpoint.name != self._name for endpoint in config.listeners):
                return _Loaded(settings, stamps, client)
            server = server_context(settings)
            if self._name == config.inter_broker_listener_name:
                check_handshake(server, client_context(replace(settings, verify_host_name=False)))
        except ConfigError as error:
            raise ConfigError(f"Listener {self._name}: {error.sentence}") from error
        key = None if settings.key_store is None else load_key(settings.key_store)
        return _Loaded(settings, stamps, client, server, key.chain[0] if key is not None else None)


class NodeTls:
    """The TLS of all listeners of a node, by name."""

    def __init__(self, config: BrokerConfig, logins: LoginCounts | None = None) -> None:
        self._config = config
        self._logins = logins or LoginCounts()
        self._handshakes = Handshakes()
        self._listeners: dict[str, ListenerTls] = {}

    @property
    def is_used(self) -> bool:
        """Whether any listener, of this node or of those it connects to, has TLS."""
        return bool(self._listeners)

    def load(self) -> None:
        """Read the stores of this node's listeners; `ConfigError` if one cannot be used."""
        if any(endpoint.protocol in SECURED for endpoint in self._config.listeners):
            # Now, not with the first connection on the loop.
            import moldau.network.tls  # noqa: F401
        for endpoint in self._config.listeners:
            listener = self.of(endpoint.name)
            if listener is not None:
                listener.server()

    def of(self, name: str) -> ListenerTls | None:
        """Return the TLS of a listener, of this node or one that only other nodes have; None without TLS."""
        if self._config.protocol_map.get(name, "") not in SECURED:
            return None
        if name not in self._listeners:
            self._listeners[name] = ListenerTls(name, self._handshakes, self._config, self._logins)
        return self._listeners[name]

    def check(self, config: BrokerConfig) -> None:
        """Raise `ConfigError` if a listener cannot use `config`; reads files."""
        for listener in self._listeners.values():
            listener.check(config)

    async def apply(self, config: BrokerConfig, pool: Pool) -> None:
        """Apply dynamic configs."""
        for listener in self._listeners.values():
            await listener.apply(config, pool)

    async def refresh(self, pool: Pool) -> None:
        """Apply changes of store files."""
        for listener in self._listeners.values():
            await listener.refresh(pool)


def tls_settings(config: BrokerConfig, name: str) -> TlsSettings:
    """Return the settings of a listener."""
    from moldau.security.tls.settings import TlsSettings

    protocol = config.protocol_map.get(name, "")

    def get(config_name: str) -> Any:
        own = f"listener.name.{name.lower()}.{config_name}"
        if config_name == "ssl.client.auth" and protocol == "SASL_SSL" and own not in config.texts:
            # As in Kafka: SASL clients show no certificate unless the listener itself asks for it.
            return "none"
        return config.for_listener(name, config_name)

    return TlsSettings.of(get)
