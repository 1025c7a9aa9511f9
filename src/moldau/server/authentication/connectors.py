"""Connections of a node to brokers and controllers, with the security of the listeners it connects to."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from moldau.config.broker.config import BrokerConfig
from moldau.network.connector import ClientSecurity, Connector, OpenConnection, SaslLogin
from moldau.server.authentication.listeners import sasl_config
from moldau.server.authentication.tls import NodeTls

if TYPE_CHECKING:
    from moldau.security.sasl.clients import BeginClient

_SASL = ("SASL_PLAINTEXT", "SASL_SSL")


class NodeConnectors(NamedTuple):
    brokers: Connector
    controllers: Connector

    @classmethod
    def of(cls, config: BrokerConfig, tls: NodeTls, open_connection: OpenConnection | None) -> NodeConnectors:
        controller = config.controller_listener_names[:1]
        return cls(
            _connector(
                config,
                tls,
                config.inter_broker_listener_name,
                config["sasl.mechanism.inter.broker.protocol"],
                open_connection,
            ),
            _connector(
                config,
                tls,
                controller[0] if controller else "",
                config["sasl.mechanism.controller.protocol"],
                open_connection,
            ),
        )


def _connector(
    config: BrokerConfig,
    tls: NodeTls,
    listener: str,
    mechanism: str,
    open_connection: OpenConnection | None,
) -> Connector:
    listener_tls = tls.of(listener)
    login = None
    if config.protocol_map.get(listener) in _SASL:
        login = _login(config, listener, mechanism)
    security = ClientSecurity(tls=None if listener_tls is None else listener_tls.client, sasl=login)
    return Connector(open_connection, security)


def _login(config: BrokerConfig, listener: str, mechanism: str) -> SaslLogin:
    """Return the login with the JAAS entry of the listener.

    The entry is read with the first connection: a node that never connects to others needs no credentials.
    """

    @cache
    def begin() -> BeginClient:
        from moldau.security.sasl.clients import sasl_client

        return sasl_client(
            mechanism, lambda name: sasl_config(config, listener, mechanism, name), listener=listener
        )

    return SaslLogin(mechanism, lambda host: begin()(host))
