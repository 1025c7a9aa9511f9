"""Settings of the console: clusters, login, and where it may listen."""

from __future__ import annotations

import pytest

from moldau.base.errors import KafkaError
from moldau.console.login.accounts import user_settings
from moldau.console.settings import ConsoleSettings

PLAIN = {"bootstrap.servers": "localhost:9092"}
SCRAM = {**PLAIN, "client.security.protocol": "SASL_SSL", "client.sasl.mechanism": "SCRAM-SHA-512"}


def test_without_sasl_there_is_no_login_on_this_machine() -> None:
    settings = ConsoleSettings.from_properties(PLAIN)
    assert not settings.login and settings.loopback
    assert settings.clusters == {"default": {"bootstrap.servers": "localhost:9092"}}


@pytest.mark.parametrize("listener", ["http://0.0.0.0:8080", "http://[::]:8080", "http://192.168.0.7:8080"])
def test_other_addresses_need_a_login(listener: str) -> None:
    with pytest.raises(KafkaError, match="this machine only"):
        ConsoleSettings.from_properties({**PLAIN, "listeners": listener})
    with pytest.raises(KafkaError, match="this machine only"):
        ConsoleSettings.from_properties({**SCRAM, "listeners": listener, "login": "none"})
    assert ConsoleSettings.from_properties({**SCRAM, "listeners": listener}).login


def test_a_cluster_with_scram_asks_for_a_login_unless_it_is_switched_off() -> None:
    assert ConsoleSettings.from_properties(SCRAM).login
    assert not ConsoleSettings.from_properties({**SCRAM, "login": "none"}).login
    with pytest.raises(KafkaError, match="SCRAM"):
        ConsoleSettings.from_properties({**PLAIN, "login": "scram"})


def test_several_clusters() -> None:
    settings = ConsoleSettings.from_properties(
        {
            **PLAIN,
            "cluster.name": "dev",
            "cluster.prod.bootstrap.servers": "a:1",
            "cluster.prod.client.id": "x",
        }
    )
    assert settings.clusters == {
        "dev": {"bootstrap.servers": "localhost:9092"},
        "prod": {"bootstrap.servers": "a:1", "client.id": "x"},
    }
    with pytest.raises(KafkaError, match=r"cluster\.prod\.bootstrap\.servers"):
        ConsoleSettings.from_properties({**PLAIN, "cluster.prod.client.id": "x"})


def test_credentials_of_a_user_replace_those_of_the_console_and_cannot_add_options() -> None:
    given = {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": 'x required username="admin" password="secret";',
    }
    settings = user_settings(given, 'a"; tokenauth="true', 'p\\"')
    (module,) = settings.security.login_modules()
    assert module.options == {"username": 'a"; tokenauth="true', "password": 'p\\"'}
    assert "secret" not in repr(settings)


def test_the_window_of_the_lag_and_its_webhook() -> None:
    assert ConsoleSettings.from_properties(PLAIN).lag_window_s == 120
    given = {**PLAIN, "lag.window.seconds": "1.5", "alert.webhook": "http://localhost:9000/alerts"}
    settings = ConsoleSettings.from_properties(given)
    assert (settings.lag_window_s, settings.alert_webhook) == (1.5, "http://localhost:9000/alerts")
    for window in ("0.5", "3601", "nan", "inf", "a minute"):
        with pytest.raises(KafkaError, match=r"lag\.window\.seconds"):
            ConsoleSettings.from_properties({**PLAIN, "lag.window.seconds": window})
    with pytest.raises(KafkaError, match="http or https"):
        ConsoleSettings.from_properties({**PLAIN, "alert.webhook": "ftp://x"})


def test_alerts_need_a_cluster_that_is_read_without_users() -> None:
    webhook = {"alert.webhook": "http://localhost:9000/alerts"}
    with pytest.raises(KafkaError, match="moldau lag --alert-webhook"):
        ConsoleSettings.from_properties({**SCRAM, **webhook})
    assert ConsoleSettings.from_properties({**SCRAM, **webhook, "login": "none"}).alert_webhook


def test_with_scram_every_cluster_has_a_login_of_its_own() -> None:
    other = {"cluster.other.bootstrap.servers": "a:1"}
    for security in ({}, {"cluster.other.security.protocol": "SSL"}):
        with pytest.raises(KafkaError, match="other has no SCRAM"):
            ConsoleSettings.from_properties({**SCRAM, **other, **security})
    scram = {"cluster.other.security.protocol": "SASL_SSL", "cluster.other.sasl.mechanism": "SCRAM-SHA-256"}
    assert list(ConsoleSettings.from_properties({**SCRAM, **other, **scram}).clusters) == ["default", "other"]
    assert ConsoleSettings.from_properties({**SCRAM, **other, "login": "none"}).login is None


def test_each_cluster_has_services_of_its_own() -> None:
    settings = ConsoleSettings.from_properties(
        {
            **PLAIN,
            "schema.registry.url": "http://a",
            "connect.url": "http://c/",
            "cluster.other.bootstrap.servers": "a:1",
            "cluster.other.schema.registry.url": "http://b",
            "cluster.third.bootstrap.servers": "a:1",
            "cluster.third.pipelines.folder": "/state",
        }
    )
    found = {
        name: (
            each.registry and each.registry["schema.registry.url"],
            each.connect_url,
            each.pipelines_folder,
        )
        for name, each in settings.services.items()
    }
    assert found == {
        "default": ("http://a", "http://c", None),
        "other": ("http://b", None, None),
        "third": (None, None, "/state"),
    }
    assert settings.clusters["other"] == {"bootstrap.servers": "a:1"}
