"""The authentication of a listener, as its security protocol demands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.base.pool import Pool, ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import format_value
from moldau.network.connection import CloseConnection, Connection
from moldau.security.principal import KafkaPrincipal
from moldau.security.sasl.mechanism import GSSAPI, OAUTHBEARER, SaslServer
from moldau.server.authentication.authentication import (
    Authentication,
    CertificateAuthentication,
    NoAuthentication,
)
from moldau.server.authentication.credentials import MetadataCredentials
from moldau.server.authentication.login_counts import LoginCounts
from moldau.server.authentication.tls import NodeTls
from moldau.server.dispatch.context import ListenerContext

if TYPE_CHECKING:
    from ssl import SSLObject


#: Mechanisms that ask an identity provider or read a key table during a login.
_WAITING_MECHANISMS = frozenset({OAUTHBEARER, GSSAPI})
_LOGIN_THREADS = 4
#: Configs that have an effect only with the prefix of a listener and a mechanism.
_OF_A_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


@dataclass(frozen=True, slots=True)
class Authenticators:
    """Creates the authentication of each listener of a node."""

    config: BrokerConfig
    tls: NodeTls
    credentials: MetadataCredentials
    clock: Clock
    pool: Pool
    randomness: Randomness
    logins: LoginCounts

    def of(self, listener: ListenerContext) -> Authentication:
        match listener.security_protocol:
            case "SSL":
                return self._certificates(listener.name)
            case "SASL_PLAINTEXT" | "SASL_SSL":
                return self._sasl(listener)
        return NoAuthentication()

    def _certificates(self, name: str) -> Authentication:
        from moldau.security.tls.der import DerError
        from moldau.security.tls.mapping_rules import NoMatchingRule, PrincipalMapping
        from moldau.security.tls.names import peer_principal

        rules = PrincipalMapping(self.config.for_listener(name, "ssl.principal.mapping.rules"))

        def principal_of(session: SSLObject | None) -> KafkaPrincipal:
            try:
                return peer_principal(session, rules)
            except (NoMatchingRule, DerError) as error:
                raise CloseConnection(str(error)) from error

        return CertificateAuthentication(principal_of)

    def _sasl(self, listener: ListenerContext) -> Authentication:
        from moldau.security.sasl.servers import SaslServers
        from moldau.server.authentication.sasl import SaslAuthentication, SaslSettings

        config, name = self.config, listener.name
        mechanisms = config.for_listener(name, "sasl.enabled.mechanisms")
        servers = SaslServers.of(
            name,
            mechanisms,
            lambda config_name, mechanism: sasl_config(config, name, mechanism, config_name),
            self.credentials,
            self.credentials,
            self.clock,
            self.randomness,
        )

        def create(mechanism: str, connection: Connection) -> SaslServer:
            return servers.create(
                mechanism, host=connection.peer_host, tls=listener.security_protocol == "SASL_SSL"
            )

        settings = SaslSettings(
            mechanisms=mechanisms,
            max_receive_size=config.for_listener(name, "sasl.server.max.receive.size"),
            max_request_size=config["socket.request.max.bytes"],
            failure_delay_seconds=config["connection.failed.authentication.delay.ms"] / 1000,
            max_session_ms={
                each: int(sasl_config(config, name, each, "connections.max.reauth.ms") or 0)
                for each in mechanisms
            },
        )
        pool = self._login_pool(mechanisms)
        return SaslAuthentication(settings, create, listener, self.clock, pool, self.logins)

    def _login_pool(self, mechanisms: Sequence[str]) -> Pool:
        """Return threads for logins that wait for other servers, which the pool of the disks must not do."""
        waits = not _WAITING_MECHANISMS.isdisjoint(mechanisms)
        return ThreadPool(_LOGIN_THREADS, "moldau-login") if waits else self.pool


def sasl_config(config: BrokerConfig, listener: str, mechanism: str | None, name: str) -> str | None:
    """Return the text of a config for a mechanism of a listener.

    A JAAS entry or a class without listener and mechanism is ignored, as in Kafka: it would apply to all
    mechanisms.
    """
    prefix = f"listener.name.{listener.lower()}."
    if mechanism is not None:
        own = config.texts.get(f"{prefix}{mechanism.lower()}.{name}")
        if own is not None or name in _OF_A_MECHANISM:
            return own
    text = config.texts.get(f"{prefix}{name}", config.texts.get(name))
    if text is not None:
        return text
    return format_value(config.values.get(name))
