"""The configs of a listener and a mechanism."""

from __future__ import annotations

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.server.authentication.listeners import sasl_config

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "CLIENTS://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
REAUTH = "connections.max.reauth.ms"


def value(name: str, **configs: str) -> str | None:
    return sasl_config(BrokerConfig({**BASE, **configs}), "CLIENTS", "OAUTHBEARER", name)


def test_the_most_specific_value_is_used() -> None:
    configs = {REAUTH: "1"}
    assert value(REAUTH, **configs) == "1"
    configs[f"listener.name.clients.{REAUTH}"] = "2"
    assert value(REAUTH, **configs) == "2"
    configs[f"listener.name.clients.oauthbearer.{REAUTH}"] = "3"
    assert value(REAUTH, **configs) == "3"
    assert value(REAUTH, **{f"listener.name.other.oauthbearer.{REAUTH}": "4"}) == "0"


@pytest.mark.parametrize(
    "name", ["sasl.jaas.config", "sasl.server.callback.handler.class", "sasl.login.callback.handler.class"]
)
def test_credentials_and_classes_need_listener_and_mechanism(name: str) -> None:
    assert value(name, **{name: "X", f"listener.name.clients.{name}": "Y"}) is None
    assert value(name, **{f"listener.name.clients.oauthbearer.{name}": "Z"}) == "Z"


def test_defaults_are_texts() -> None:
    assert value("sasl.oauthbearer.expected.audience") == ""
    assert value("sasl.oauthbearer.expected.issuer") is None
    assert value("sasl.login.refresh.window.factor") == "0.8"
    assert value("sasl.kerberos.principal.to.local.rules") == "DEFAULT"
