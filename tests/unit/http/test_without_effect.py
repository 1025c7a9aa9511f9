"""Warnings of settings that protect Confluent's services but have no effect here."""

from __future__ import annotations

import logging

import pytest

from moldau.registry.command import create_service
from moldau.rest.command import create_app


def test_the_registry_warns_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "kafkastore.bootstrap.servers": "localhost:9092",
        "resource.extension.class": "io.example.Security",
        "metadata.encoder.secret": "hidden",
        "rest.servlet.initializor.classes": "",
    }
    with caplog.at_level(logging.WARNING):
        create_service(properties, "1")
    first, second = caplog.messages
    assert first.startswith("The setting resource.extension.class has no effect: classes of Java")
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
        create_app(properties, "1")
    assert [message.split()[2] for message in caplog.messages] == [
        "response.http.headers.config",
        "api.v3.produce.rate.limit.enabled",
    ]
