"""The contexts of listeners, and when they are replaced."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import InlinePool
from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.config.dynamic import DELETE, SET, Operation
from moldau.network.limits import ConnectionLimits
from moldau.server.authentication.store_changes import StoreChanges
from moldau.server.authentication.tls import NodeTls, tls_settings
from moldau.server.settings import NodeSettings
from tests.harness.security.certificates import HOSTS, Certificates

LOCATION = "listener.name.clients.ssl.keystore.location"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def properties(certificates: Certificates, **more: str) -> dict[str, str]:
    return {
        "process.roles": "broker",
        "node.id": "1",
        "listeners": "CLIENTS://127.0.0.1:0,SASL://127.0.0.1:0,PLAIN://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL,SASL:SASL_SSL,PLAIN:PLAINTEXT,CONTROLLER:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        **certificates.server_properties("required"),
        **more,
    }


def test_certificates_of_sasl_clients_need_the_prefix_of_the_listener(certificates: Certificates) -> None:
    config = BrokerConfig(properties(certificates))
    assert tls_settings(config, "CLIENTS").client_auth == "required"
    assert tls_settings(config, "SASL").client_auth == "none"
    own = BrokerConfig(properties(certificates, **{"listener.name.sasl.ssl.client.auth": "requested"}))
    assert tls_settings(own, "SASL").client_auth == "requested"


def test_listeners_of_other_nodes_have_only_a_context_for_clients(certificates: Certificates) -> None:
    tls = NodeTls(BrokerConfig(properties(certificates)))
    controllers = tls.of("CONTROLLER")
    assert controllers is not None
    assert controllers.client().check_hostname
    with pytest.raises(ConfigError, match="not a listener of this node"):
        controllers.server()
    assert tls.of("PLAIN") is None


def test_contexts_stay_until_a_file_changes(certificates: Certificates) -> None:
    tls = NodeTls(BrokerConfig(properties(certificates)))
    tls.load()
    listener = tls.of("CLIENTS")
    assert listener is not None
    first = listener.server()
    asyncio.run(tls.refresh(InlinePool()))
    assert listener.server() is first
    certificates.issue("server", HOSTS).write_pem(certificates.server)
    asyncio.run(tls.refresh(InlinePool()))
    assert listener.server() is not first


def test_a_damaged_file_is_logged_once(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    tls = NodeTls(BrokerConfig(properties(certificates)))
    tls.load()
    listener = tls.of("CLIENTS")
    assert listener is not None
    first = listener.server()
    certificates.server.write_text("damaged")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            asyncio.run(listener.refresh(InlinePool()))
    assert listener.server() is first
    assert len(caplog.messages) == 1


def test_changes_are_checked_before_they_are_stored(certificates: Certificates) -> None:
    config = BrokerConfig(properties(certificates))
    tls = NodeTls(config)
    tls.load()
    changes = StoreChanges(NodeSettings(config, ConnectionLimits()), tls, InlinePool())
    fresh = certificates.issue("server", HOSTS).write_pem(certificates.folder / "fresh.pem")
    good, bad = (Operation(LOCATION, SET, str(path)) for path in (fresh, "/nonexistent"))
    asyncio.run(changes.check_operations("1", [good]))
    with pytest.raises(KafkaError) as error:
        asyncio.run(changes.check_operations("1", [bad]))
    assert error.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError):
        asyncio.run(changes.check_configs("1", {LOCATION: "/nonexistent"}))
    for name in ("listener.name.nowhere.ssl.key.password", "listener.name.CLIENTS.max.connections"):
        with pytest.raises(KafkaError, match="no such listener"):
            asyncio.run(changes.check_operations("1", [Operation(name, SET, "5")]))
        asyncio.run(changes.check_operations("1", [Operation(name, DELETE, None)]))
    # The stores of other nodes are on other machines.
    asyncio.run(changes.check_operations("2", [bad]))
    asyncio.run(changes.check_operations("1", [Operation("num.io.threads", SET, "9")]))


def test_a_node_that_does_not_trust_itself_does_not_start(certificates: Certificates, tmp_path: Path) -> None:
    strange = Certificates(tmp_path / "strange")
    config = BrokerConfig(properties(certificates, **{"ssl.truststore.location": str(strange.ca)}))
    with pytest.raises(ConfigError, match=r"Listener CLIENTS: .*trust store"):
        NodeTls(config).load()


def test_configs_that_contradict_each_other_do_not_stop_the_node(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """A change that is sent to a controller is not checked by the broker that it concerns."""
    config = BrokerConfig(properties(certificates))
    tls = NodeTls(config)
    tls.load()
    listener = tls.of("CLIENTS")
    assert listener is not None
    first = listener.server()
    wrong = config.with_dynamic({}, {"listener.name.clients.ssl.keystore.type": "PKCS12"})
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            asyncio.run(tls.apply(wrong, InlinePool()))
    assert listener.server() is first
    assert ["ssl.keystore.password is not" in each for each in caplog.messages] == [True]
