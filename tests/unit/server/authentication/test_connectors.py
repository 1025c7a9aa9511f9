"""How a node connects to others: with the security of the listener it connects to."""

from __future__ import annotations

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.server.authentication.connectors import NodeConnectors
from moldau.server.authentication.tls import NodeTls
from tests.unit.server.authentication.test_listeners import BASE

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def connectors(protocols: str, **configs: str) -> NodeConnectors:
    config = BrokerConfig(
        {
            **BASE,
            "listener.security.protocol.map": protocols,
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            **configs,
        }
    )
    return NodeConnectors.of(config, NodeTls(config), None)


def test_each_listener_has_its_own_credentials() -> None:
    made = connectors(
        "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        **{
            "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} username="a" password="1";',
            "listener.name.controller.plain.sasl.jaas.config": f'{MODULE} username="b" password="2";',
        },
    )
    logins = [each.security.sasl for each in made]
    assert [login and login.begin("host").first() for login in logins] == [b"\0a\x001", b"\0b\x002"]


def test_listeners_without_sasl_have_no_login() -> None:
    made = connectors("CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT")
    assert [each.security.sasl for each in made] == [None, None]


def test_missing_credentials_are_reported_by_the_first_connection() -> None:
    """A node that never connects to others needs none, as in Kafka."""
    entry = {"listener.name.clients.plain.sasl.jaas.config": f'{MODULE} user_a="1";'}
    login = connectors("CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT", **entry).brokers.security.sasl
    assert login is not None
    with pytest.raises(ConfigError, match="the username is not set"):
        login.begin("host")
