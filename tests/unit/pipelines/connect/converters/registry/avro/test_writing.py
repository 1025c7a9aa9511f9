"""Schemas as Avro: the texts that Confluent's converter registers, and round trips."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from moldau.pipelines.connect.converters.registry.avro.converter import _codec
from moldau.pipelines.connect.converters.registry.avro.options import Options
from moldau.pipelines.connect.converters.registry.avro.reading import connect_schema
from moldau.pipelines.connect.converters.registry.avro.values import reader, writer
from moldau.pipelines.connect.converters.registry.avro.writing import schema_text
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import (
    INT8,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    array,
    map_of,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct
from tests.unit.pipelines.connect.converters.registry.strategies import structs

PLAIN = Options()


def round_trip(schema: Schema | None, value: Any, options: Options = PLAIN) -> tuple[Schema | None, Any]:
    codec = _codec(schema_text(schema, options), {})
    data = codec.encode(writer(schema, options)(value))
    found = connect_schema(codec.schema, codec.named, options)
    return found, reader(found, options)(codec.decode(data, named_types=True))


@given(structs())
@settings(max_examples=60, deadline=None)
def test_structs_come_back_with_their_schema(drawn: tuple[Schema, Struct]) -> None:
    schema, value = drawn
    assert round_trip(schema, value) == (schema, value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (STRING, '"string"'),
        (INT8, '{"type":"int","connect.type":"int8"}'),
        (OPTIONAL_INT32, '["null","int"]'),
        (INT32.replace(optional=True, default=3), '[{"type":"int","connect.default":3},"null"]'),
        (
            logical.decimal_schema(2),
            '{"type":"bytes","scale":2,"precision":64,"connect.version":1,"connect.parameters":{"scale":"2"},'
            '"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}',
        ),
        (
            logical.TIMESTAMP,
            '{"type":"long","connect.version":1,'
            '"connect.name":"org.apache.kafka.connect.data.Timestamp","logicalType":"timestamp-millis"}',
        ),
        (
            map_of(INT32, STRING),
            '{"type":"array","items":{"type":"record","name":"MapEntry",'
            '"namespace":"io.confluent.connect.avro","fields":[{"name":"key","type":"int"},'
            '{"name":"value","type":"string"}]}}',
        ),
        (
            struct({"id": INT64, "note": OPTIONAL_STRING}, name="com.acme.Order", version=2, doc="An order"),
            '{"type":"record","name":"Order","namespace":"com.acme","fields":[{"name":"id","type":"long"},'
            '{"name":"note","type":["null","string"],"default":null}],"connect.doc":"An order",'
            '"connect.version":2,"connect.name":"com.acme.Order"}',
        ),
        (
            struct({"a": struct({"x": INT32}), "b": array(struct({"x": INT32}))}),
            '{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro","fields":['
            '{"name":"a","type":{"type":"record","name":"ConnectDefault2","fields":[{"name":"x","type":"int"}'
            ']}},{"name":"b","type":{"type":"array","items":"ConnectDefault2"}}]}',
        ),
    ],
)
def test_texts_are_those_of_confluents_converter(schema: Schema, text: str) -> None:
    assert schema_text(schema, PLAIN) == text


def test_without_metadata_only_avros_own_types_are_written() -> None:
    schema = struct({"a": INT8, "t": logical.DATE}, name="com.acme.A", version=1, doc="doc")
    assert schema_text(schema, Options(metadata=False)) == (
        '{"type":"record","name":"A","namespace":"com.acme","fields":[{"name":"a","type":"int"},'
        '{"name":"t","type":{"type":"int","logicalType":"date"}}]}'
    )


def test_invalid_names_are_scrubbed() -> None:
    schema = struct({"my-field": INT32, "1st": STRING}, name="com.my-shop.An order")
    options = Options(scrub=True)
    node = json.loads(schema_text(schema, options))
    assert (node["name"], node["namespace"]) == ("An_order", "com.my_shop")
    assert [each["name"] for each in node["fields"]] == ["my_field", "x1st"]
    _codec(json.dumps(node), {})


def test_values_without_schema_come_back() -> None:
    value = {"a": [1, "x", None, {"b": True, 3: 1.5}], "n": b"bytes"}
    assert round_trip(None, value) == (None, value)


def test_enums_stay_enums_with_enhanced_support() -> None:
    text = (
        '{"type":"record","name":"R","fields":[{"name":"e","type":'
        '{"type":"enum","name":"a.E","symbols":["X","Y"]}}]}'
    )
    codec = _codec(text, {})
    options = Options(enhanced=True)
    schema = connect_schema(codec.schema, codec.named, options)
    assert schema is not None
    value = reader(schema, options)({"e": "Y"})
    assert value.get("e") == "Y"
    again = json.loads(schema_text(schema, options))
    assert again["fields"][0]["type"]["symbols"] == ["X", "Y"]
    assert round_trip(schema, value, options) == (schema, value)
    assert json.loads(schema_text(schema, PLAIN))["fields"][0]["type"]["type"] == "string"


def test_a_union_is_a_struct_with_one_field_set() -> None:
    text = (
        '{"type":"record","name":"R","fields":[{"name":"u","type":["null","string","long",'
        '{"type":"record","name":"a.P","fields":[{"name":"x","type":"int"}]}]}]}'
    )
    codec = _codec(text, {})
    schema = connect_schema(codec.schema, codec.named, PLAIN)
    assert schema is not None
    read = reader(schema, PLAIN)
    for given_value, member, expected in (
        ("s", "string", "s"),
        (7, "long", 7),
        ({"x": 1}, "P", 1),
        (None, None, None),
    ):
        record = read(codec.decode(codec.encode({"u": given_value}), named_types=True))
        union = record.get("u")
        if member is None:
            assert union is None
            continue
        found = union.get(member)
        assert (found.get("x") if isinstance(found, Struct) else found) == expected
        assert round_trip(schema, record) == (schema, record)


def test_logical_types_that_connect_does_not_have_are_numbers_and_text() -> None:
    text = (
        '{"type":"record","name":"R","fields":[{"name":"t","type":{"type":"long",'
        '"logicalType":"timestamp-micros"}},{"name":"u","type":{"type":"string","logicalType":"uuid"}}]}'
    )
    codec = _codec(text, {})
    schema = connect_schema(codec.schema, codec.named, PLAIN)
    assert schema is not None
    assert [each.schema.type for each in schema.fields] == [Type.INT64, Type.STRING]
    value = reader(schema, PLAIN)(codec.decode(codec.encode({"t": 1_000_001, "u": "x"})))
    assert (value.get("t"), value.get("u")) == (1_000_001, "x")


def test_recursive_records_are_refused() -> None:
    codec = _codec('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', {})
    with pytest.raises(DataError, match="contains itself"):
        connect_schema(codec.schema, codec.named, PLAIN)


def test_two_schemas_of_one_name_are_refused() -> None:
    schema = struct({"a": struct({"x": INT32}, name="P"), "b": struct({"y": INT32}, name="P")})
    with pytest.raises(DataError, match="the name P"):
        schema_text(schema, PLAIN)


def test_a_null_for_a_required_field_is_refused() -> None:
    with pytest.raises(DataError):
        writer(struct({"a": INT32}), PLAIN)(Struct(struct({"a": INT32})))
