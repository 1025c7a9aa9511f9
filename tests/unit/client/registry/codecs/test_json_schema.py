"""JSON by a JSON Schema: errors are those of serialization."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.registry.codecs.json_schema import JsonSchemaCodec
from moldau.client.serdes import SerializationError

DEEP = 100_000


def test_a_title_that_is_not_text_names_nothing() -> None:
    assert JsonSchemaCodec('{"title":"Order"}').name == "Order"
    assert JsonSchemaCodec('{"title":5}').name is None


def test_deeply_nested_json_is_refused() -> None:
    codec = JsonSchemaCodec("{}")
    with pytest.raises(SerializationError):
        codec.decode(b"[" * DEEP + b"]" * DEEP)
    value: list[Any] = []
    for _ in range(DEEP):
        value = [value]
    with pytest.raises(SerializationError):
        codec.encode(value, validate=False)
    with pytest.raises(SerializationError):
        JsonSchemaCodec('{"not":' * DEEP + "{}" + "}" * DEEP)
