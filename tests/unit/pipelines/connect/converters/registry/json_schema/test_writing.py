"""Schemas as JSON Schema: texts, and round trips."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings

from moldau.client.registry.codecs.json_schema import JsonSchemaCodec
from moldau.pipelines.connect.converters.registry.json_schema.options import Options
from moldau.pipelines.connect.converters.registry.json_schema.reading import connect_schema
from moldau.pipelines.connect.converters.registry.json_schema.values import checked_writer, dumped, reader
from moldau.pipelines.connect.converters.registry.json_schema.writing import schema_text
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import (
    FLOAT32,
    INT8,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    map_of,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct
from tests.unit.pipelines.connect.converters.registry.strategies import structs

PLAIN = Options()


def read_schema(text: str, options: Options = PLAIN) -> Schema:
    codec = JsonSchemaCodec(text)
    return connect_schema(codec.schema, codec.registry, options)


@given(structs())
@settings(max_examples=60, deadline=None)
def test_structs_come_back_with_their_schema(drawn: tuple[Schema, Struct]) -> None:
    schema, value = drawn
    for options in (PLAIN, Options(numeric_decimals=True)):
        text = schema_text(schema, options)
        data = dumped(checked_writer(schema, options)(value))
        JsonSchemaCodec(text).check(json.loads(data))
        found = read_schema(text, options)
        assert found == schema
        assert reader(found)(json.loads(data, parse_float=Decimal)) == value


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (STRING, '{"type":"string"}'),
        (INT8, '{"type":"integer","connect.type":"int8"}'),
        (FLOAT32, '{"type":"number","connect.type":"float32"}'),
        (OPTIONAL_STRING, '{"oneOf":[{"type":"null"},{"type":"string"}]}'),
        (
            struct({"id": INT64, "note": OPTIONAL_STRING}, name="Order", version=2, doc="An order"),
            '{"title":"Order","description":"An order","type":"object","properties":{"id":{"type":"integer",'
            '"connect.index":0,"connect.type":"int64"},"note":{"oneOf":[{"type":"null"},{"type":"string"}],'
            '"connect.index":1}},"connect.version":2}',
        ),
        (
            map_of(STRING, STRING),
            '{"type":"object","additionalProperties":{"type":"string"},"connect.type":"map"}',
        ),
        (
            logical.DATE,
            '{"title":"org.apache.kafka.connect.data.Date","type":"integer","connect.version":1,'
            '"connect.type":"int32"}',
        ),
    ],
)
def test_texts(schema: Schema, text: str) -> None:
    assert schema_text(schema, PLAIN) == text


def test_schemas_written_by_hand_are_read() -> None:
    text = json.dumps(
        {
            "type": "object",
            "title": "Person",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": ["null", "integer"]},
                "kind": {"enum": ["a", "b"]},
                "home": {"$ref": "#/definitions/address"},
                "contact": {"oneOf": [{"type": "string"}, {"$ref": "#/definitions/address"}]},
            },
            "required": ["name"],
            "definitions": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
        }
    )
    schema = read_schema(text, Options(optional_if_not_required=True))
    assert schema.name == "Person"
    found = {each.name: (each.schema.type, each.schema.optional) for each in schema.fields}
    assert found["name"] == (Type.STRING, False)
    assert found["age"] == (Type.INT64, True)
    assert found["home"] == (Type.STRUCT, True)
    value = reader(schema)({"name": "x", "home": {"city": "Brno"}, "contact": {"city": "Praha"}})
    assert value.get("home").get("city") == "Brno"
    assert value.get("contact").get("io.confluent.connect.json.OneOf.field.1").get("city") == "Praha"
    assert value.get("age") is None


def test_all_of_joins_the_properties() -> None:
    text = json.dumps(
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"b": {"type": "integer"}}},
            ]
        }
    )
    assert [each.name for each in read_schema(text).fields] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "true",
        '{"type":"array"}',
        '{"$ref":"#/definitions/n","definitions":{"n":{"type":"object","properties":{"n":{"$ref":"#/definitions/n"}}}}}',
        '{"type":"object","properties":{"a":{"$ref":"other.json"}}}',
    ],
)
def test_what_connect_cannot_express_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        read_schema(text)


@pytest.mark.parametrize("value", ["text", 1.5, True, 2**70])
def test_values_of_another_type_are_refused(value: object) -> None:
    with pytest.raises(DataError):
        reader(INT64)(value)
