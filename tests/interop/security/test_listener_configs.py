"""Which configs of a listener can be altered while a broker runs, compared with Apache Kafka.

Apache Kafka accepts configs of an existing listener that it then ignores; Moldau refuses them.
"""

from __future__ import annotations

import pytest

from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.harness.security.login import logged_in
from tests.harness.security.secured_node import ADMIN, SecuredNode, jaas

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

_BROKER = 4
_SET, _DELETE = 0, 1
_INVALID_REQUEST = 42

#: Accepted by both.
EFFECTIVE = {
    "listener.name.jks.max.connections": "1000",
    "listener.name.jks.max.connection.creation.rate": "1000",
    "listener.name.jks.num.network.threads": "2",
    "listener.name.jks.ssl.truststore.type": "JKS",
}
#: Refused by both.
INVALID = {
    "listener.name.jks.max.connections": "x",
    "listener.name.jks.ssl.keystore.location": "/nowhere",
    "listener.name.jks.ssl.client.auth": "sometimes",
    "listener.name.jks.principal.builder.class": "foo.Bar",
    "principal.builder.class": "foo.Bar",
    "ssl.keystore.location": "/nowhere",
    "ssl.principal.mapping.rules": "DEFAULT",
    "connections.max.reauth.ms": "1000",
}
#: Accepted and ignored by Apache Kafka.
WITHOUT_EFFECT = {
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas("PLAIN", ADMIN, "another", server=True),
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1000",
    "listener.name.sasl_plaintext.sasl.server.max.receive.size": "10",
    "listener.name.jks.ssl.client.auth": "none",
    "listener.name.jks.ssl.principal.mapping.rules": "RULE:[",
    "listener.name.jks.ssl.allow.dn.changes": "true",
    "listener.name.nowhere.max.connections": "1000",
    "listener.name.JKS.max.connections": "1000",
}


def outcomes(node: SecuredNode, configs: dict[str, str]) -> dict[str, int]:
    """Set each config, log in after it, and remove it again; return the error codes."""
    codes = {}
    for name, value in configs.items():
        codes[name] = _alter(node, name, _SET, value)
        # No change of another listener, and none that is refused or ignored, affects a login.
        with logged_in(node):
            pass
        assert _alter(node, name, _DELETE, None) in (0, codes[name])
    return codes


def _alter(node: SecuredNode, name: str, operation: int, value: str | None) -> int:
    change = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name="1", configs=[change])
    with logged_in(node) as wire:
        response = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return int(response.responses[0].error_code)


def test_stores_and_limits_can_be_altered(secured: SecuredNode) -> None:
    assert outcomes(secured, EFFECTIVE) == dict.fromkeys(EFFECTIVE, 0)


def test_invalid_changes_are_refused(secured: SecuredNode) -> None:
    assert outcomes(secured, INVALID) == dict.fromkeys(INVALID, _INVALID_REQUEST)


def test_apache_kafka_ignores_other_configs(secured_apache: SecuredNode) -> None:
    assert outcomes(secured_apache, WITHOUT_EFFECT) == dict.fromkeys(WITHOUT_EFFECT, 0)


def test_other_configs_are_refused(secured_moldau: SecuredNode) -> None:
    assert outcomes(secured_moldau, WITHOUT_EFFECT) == dict.fromkeys(WITHOUT_EFFECT, _INVALID_REQUEST)
