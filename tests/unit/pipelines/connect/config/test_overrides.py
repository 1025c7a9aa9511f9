"""Overrides of clients that the policy of a worker forbids, with Kafka Connect's messages."""

from __future__ import annotations

import pytest

from moldau.pipelines.connect.config.overrides import OverridePolicy
from moldau.pipelines.connect.config.worker import WorkerSettings, with_defaults
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.worker.validation import Validation, errors_of

PACKAGE = "org.apache.kafka.connect.connector.policy."
POLICY = "connector.client.config.override.policy"
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}
SINK = {"name": "s", "connector.class": "FileStreamSink", "file": "f", "topics": "t"}


def settings(**worker: str) -> WorkerSettings:
    given = {name.replace("_", "."): value for name, value in worker.items()}
    return WorkerSettings.distributed(with_defaults({"bootstrap.servers": "localhost:9092", **given}, "g"))


def policy(name: str, **worker: str) -> OverridePolicy:
    return settings(connector_client_config_override_policy=name, **worker).overrides


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("All", {"acks", "sasl.jaas.config"}),
        ("None", set()),
        ("Principal", {"sasl.jaas.config"}),
        (f"{PACKAGE}PrincipalConnectorClientConfigOverridePolicy", {"sasl.jaas.config"}),
        ("Allowlist", {"acks"}),
    ],
)
def test_policies(name: str, allowed: set[str]) -> None:
    found = policy(name, connector_client_config_override_allowlist="acks, linger.ms")
    config = {**SOURCE, "producer.override.acks": "1", "producer.override.sasl.jaas.config": "x"}
    refused = {each.removeprefix("producer.override.") for each in found.errors(config, is_source=True)}
    assert refused == {"acks", "sasl.jaas.config"} - allowed


def test_only_clients_that_a_connector_uses_are_looked_at() -> None:
    found = policy("None")
    overrides = {f"{client}.override.client.rack": "a" for client in ("producer", "consumer", "admin")}
    letters = {"errors.deadletterqueue.topic.name": "letters"}
    assert list(found.errors({**SOURCE, **overrides}, is_source=True)) == ["producer.override.client.rack"]
    assert list(found.errors({**SINK, **overrides}, is_source=False)) == ["consumer.override.client.rack"]
    assert found.errors({**SINK, **overrides, **letters}, is_source=False).keys() == overrides.keys()


def test_validation_names_the_override_and_an_existing_connector_does_not_start() -> None:
    worker = settings(connector_client_config_override_policy="None")
    config = {**SINK, "consumer.override.group.id": "other"}
    message = "The 'None' policy does not allow 'group.id' to be overridden in the connector configuration."
    assert errors_of(Validation(Plugins(), worker).validate(config)) == [message]
    with pytest.raises(ConnectError, match="Client Config Overrides not allowed"):
        worker.overrides.check(config, is_source=False)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match=POLICY):
        policy("Nothing")


@pytest.mark.parametrize("name", ["rest.extension.classes", "admin.listeners"])
def test_settings_that_would_not_protect_the_worker_are_refused(name: str) -> None:
    assert settings(**{name: ""}).properties[name] == ""
    with pytest.raises(ConfigError, match=name):
        settings(**{name: "x"})
