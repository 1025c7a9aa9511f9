"""Warnings of settings of Confluent's services that have no effect here, and of unknown ones."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from moldau.http.unsupported_settings import warn_of_settings
from moldau.registry import wiring as registry
from moldau.rest import wiring as rest

DOCS = Path(__file__).parents[3] / "docs"


def test_the_registry_warns_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "kafkastore.bootstrap.servers": "localhost:9092",
        "resource.extension.class": "io.example.Security",
        "metadata.encoder.secret": "hidden",
        "rest.servlet.initializor.classes": "",
    }
    with caplog.at_level(logging.WARNING):
        registry.create_service(properties, "1")
    first, second = caplog.messages
    assert first.startswith("The setting resource.extension.class has no effect: Java classes")
    assert (
        second == "The setting metadata.encoder.secret has no effect: sensitive metadata is stored as it is."
    )


def test_the_proxy_warns_of_what_is_switched_on(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "bootstrap.servers": "localhost:9092",
        "rate.limit.enable": "false",
        "api.v3.produce.rate.limit.enabled": "TRUE",
        "api.v3.produce.request.size.limit.max.bytes": "0",
        "response.http.headers.config": "add X-Frame-Options: DENY",
    }
    with caplog.at_level(logging.WARNING):
        rest.create_service(properties, "1")
    assert [message.split()[2] for message in caplog.messages] == [
        "api.v3.produce.rate.limit.enabled",
        "response.http.headers.config",
    ]


def test_known_names_without_effect_and_unknown_names_are_told_apart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    properties = {
        "kafkastore.bootstrap.servers": "localhost:9092",
        "schema.compatability.level": "FULL",
        "thread.pool.max": "200",
        "schema.cache.size": "1000",
        "kafkastore.timout.ms": "1000",
        "kafkastore.ssl.keystore.type": "PEM",
        "kafkastore.write.max.retries": "5",
        "debug": "false",
        "http2.enabled": "true",
    }
    with caplog.at_level(logging.WARNING):
        registry.create_service(properties, "1")
    assert caplog.messages == [
        "These settings have no effect here: http2.enabled, kafkastore.write.max.retries, "
        "schema.cache.size, thread.pool.max.",
        "These settings are unknown; check their names: kafkastore.timout.ms, schema.compatability.level.",
    ]


@pytest.mark.parametrize("page", ["REGISTRY.md", "REST.md"])
def test_settings_of_the_page_are_not_unknown(page: str, caplog: pytest.LogCaptureFixture) -> None:
    cells = re.findall(
        r"^\| (`[^|]+) \|", (DOCS / page).read_text().partition("## Settings")[2], re.MULTILINE
    )
    names = [name for cell in cells for name in re.findall(r"`([a-z][\w.]*[\w*])`", cell)]
    assert len(names) > 30
    known = (registry if page == "REGISTRY.md" else rest).SETTINGS
    with caplog.at_level(logging.WARNING):
        warn_of_settings({name.replace("*", "x"): "x" for name in names}, known)
    assert caplog.messages == []
