"""JSON with schema: the text before the payload repeats, and is parsed once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.pipelines.connect.converters.json import converter as module
from moldau.pipelines.connect.converters.json.converter import JsonConverter

SCHEMA = {"type": "struct", "optional": False, "fields": [{"field": "id", "type": "int64"}]}


def converter() -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "true"})
    return made


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_schema_that_repeats_is_parsed_once(
    separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[Any] = []
    parse = module.parse_json

    def counted(data: bytes, **options: Any) -> Any:
        parsed.append(data)
        return parse(data, **options)

    monkeypatch.setattr(module, "parse_json", counted)
    read = converter()
    envelopes = [{"schema": SCHEMA, "payload": {"id": number}} for number in range(5)]
    data = [json.dumps(each, separators=separators).encode() for each in envelopes]
    found = [read.to_connect("t", [], each).value for each in data]
    assert [each.get("id") for each in found] == [0, 1, 2, 3, 4]
    assert parsed == data[:1]


def test_another_schema_after_a_known_one_is_read() -> None:
    read = converter()
    values = [
        read.to_connect("t", [], json.dumps({"schema": schema, "payload": payload}).encode()).value
        for schema, payload in [({"type": "int32"}, 1), ({"type": "string"}, "a"), ({"type": "int32"}, 2)]
    ]
    assert values == [1, "a", 2]
    reversed_members = b'{"payload": 3, "schema": {"type": "int32"}}'
    assert read.to_connect("t", [], reversed_members).value == 3
