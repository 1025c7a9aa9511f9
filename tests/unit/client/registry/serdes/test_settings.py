from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry import RegistryClient
from moldau.client.registry.serdes.settings import PROPERTIES, SerdeSettings, known_properties
from tests.docs.markdown import section

PREFIX = "io.confluent.kafka.serializers."


def of(config: Mapping[str, Any], *, key: bool = False) -> SerdeSettings:
    # Never asked.
    return SerdeSettings.of(config, RegistryClient("http://127.0.0.1:1"), key=key)


def test_configuration_of_a_java_application_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "schema.registry.url": "http://localhost:8081",
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "user:password",
        "max.schemas.per.subject": "100",
        "request.header.X-Team": "shop",
        "value.subject.name.strategy": f"{PREFIX}subject.RecordNameStrategy",
        "value.schema.id.serializer": f"{PREFIX}schema.id.HeaderSchemaIdSerializer",
        "context.name.strategy": f"{PREFIX}context.NullContextNameStrategy",
        "specific.avro.reader": "true",
        "rule.executors": "encrypt",
        "rule.executors.encrypt.class": "io.confluent.Encryption",
        "json.fail.unknown.properties": "false",
        "propagate.schema.tags": "true",
    }
    with caplog.at_level(logging.WARNING):
        settings = of(config)
    assert settings.subject_name("orders", False, "shop.Order") == "shop.Order"
    assert settings.id_in_header and settings.propagate_tags
    [warning] = caplog.messages
    assert warning == (
        "These properties of serializers have no effect: json.fail.unknown.properties, rule.executors, "
        "rule.executors.encrypt.class, specific.avro.reader"
    )


def test_unknown_property_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"Unknown property auto\.register\.schema;") as refused:
        of({"auto.register.schema": False})
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_settings_of_keys_and_values_differ() -> None:
    config = {
        "schema.id.serializer": "PREFIX",
        "key.schema.id.serializer": "HEADER",
        "value.schema.id.deserializer": "PREFIX",
    }
    keys, values = of(config, key=True), of(config)
    assert (keys.id_in_header, keys.read_headers) == (True, True)
    assert (values.id_in_header, values.read_headers) == (False, False)


@pytest.mark.parametrize(
    ("context", "subject"),
    [
        (".staging", ":.staging:orders-value"),
        ("staging", ":.staging:orders-value"),
        (":.staging:", ":.staging:orders-value"),
        (".", "orders-value"),
        (None, "orders-value"),
    ],
)
def test_function_names_the_context_of_a_subject(context: str | None, subject: str) -> None:
    settings = of({"context.name.strategy": lambda topic: context})
    assert settings.subject_name("orders", False, None) == subject


def test_fallback_of_associated_subjects() -> None:
    conf = {"subject.name.strategy.fallback.type": "ASSOCIATED"}
    with pytest.raises(KafkaError, match="use another strategy"):
        of({"subject.name.strategy": "ASSOCIATED", "subject.name.strategy.conf": conf})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"use.deprecated.format": True}, "use.deprecated.format=true is not supported"),
        ({"context.name.strategy": "com.example.Contexts"}, "use a function of the topic"),
        ({"value.schema.id.serializer": "SUFFIX"}, "value.schema.id.serializer=SUFFIX: use one of"),
    ],
)
def test_invalid_values_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaError, match=message):
        of(config)


def test_properties_of_a_producer_are_passed_on() -> None:
    given = {
        "bootstrap.servers": "b",
        "validate": False,
        "specific.avro.reader": True,
        "use.schema.guid": "g",
    }
    assert known_properties(given).keys() == {"validate", "specific.avro.reader", "use.schema.guid"}


def test_page_has_every_property() -> None:
    page = section("docs/CLIENT.md", "Use a schema registry")
    assert [name for name in PROPERTIES if f"`{name}`" not in page] == []
