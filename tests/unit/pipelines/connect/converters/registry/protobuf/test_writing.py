"""Schemas as Protobuf: texts, and round trips."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from moldau.pipelines.connect.converters.registry.protobuf.converter import _codec
from moldau.pipelines.connect.converters.registry.protobuf.options import Options
from moldau.pipelines.connect.converters.registry.protobuf.reading import connect_schema
from moldau.pipelines.connect.converters.registry.protobuf.values import fill, value_of
from moldau.pipelines.connect.converters.registry.protobuf.writing import schema_text
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import (
    BYTES,
    INT8,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    array,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct
from tests.unit.pipelines.connect.converters.registry.strategies import structs

PLAIN = Options()
EXACT = Options(optional_for_nullables=True, enhanced=True)


def round_trip(schema: Schema, value: Any, options: Options) -> tuple[Schema, Any]:
    text, name = schema_text(schema, options)
    codec = _codec(text, {})
    indexes = codec.indexes_by_name(name)
    message = codec.message_class(indexes)()
    fill(message, schema, value, options)
    found = connect_schema(codec.descriptor(indexes), options)
    return found, value_of(codec.decode(message.SerializeToString(), indexes), found, options)


def plain(value: Any) -> Any:
    """Return structs as dicts, so that values of schemas that differ by Protobuf's tags can be compared."""
    if isinstance(value, Struct):
        return {each.name: plain(value.value_of(each)) for each in value.schema.fields}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


@given(structs())
@settings(max_examples=60, deadline=None)
def test_values_come_back_and_schemas_that_were_read_stay_as_they_are(drawn: tuple[Schema, Struct]) -> None:
    schema, value = drawn
    found, read = round_trip(schema, value, EXACT)
    expected = plain(value)
    # Protobuf does not tell an absent list or map from an empty one.
    assert _without_empty(plain(read)) == _without_empty(expected)
    again, _ = round_trip(found, read, EXACT)
    assert schema_text(again, EXACT) == schema_text(found, EXACT)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each not in (None, [], {})}
    return value


def test_the_text_declares_nested_messages_and_parameters() -> None:
    inner = struct({"x": INT8}, name="com.acme.Inner")
    schema = struct({"id": INT64, "tags": array(STRING), "inner": inner}, name="com.acme.Outer")
    assert schema_text(schema, PLAIN) == (
        'syntax = "proto3";\npackage com.acme;\n\nimport "confluent/meta.proto";\n\n'
        "message Outer {\n  int64 id = 1;\n  repeated string tags = 2;\n  Inner inner = 3;\n\n"
        "  message Inner {\n    int32 x = 1 [(confluent.field_meta) = {\n      params: [\n        {\n"
        '          key: "connect.type",\n          value: "int8"\n        }\n      ]\n    }];\n  }\n}\n',
        "com.acme.Outer",
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (PLAIN, "  string note = 1;"),
        (Options(optional_for_nullables=True), "  optional string note = 1;"),
        (Options(wrapper_for_nullables=True), "  google.protobuf.StringValue note = 1;"),
    ],
)
def test_null_is_kept_if_the_field_is_optional_or_wrapped(options: Options, line: str) -> None:
    schema = struct({"note": OPTIONAL_STRING}, name="Order")
    assert line in schema_text(schema, options)[0].splitlines()
    _, read = round_trip(schema, Struct(schema), options)
    assert read.get("note") == ("" if options == PLAIN else None)


@pytest.mark.parametrize(("schema", "value"), [(INT64, -5), (STRING, "x"), (BYTES, b"\x00")])
def test_primitive_values_are_wrapped(schema: Schema, value: Any) -> None:
    assert round_trip(schema, value, PLAIN) == (schema, value)


def test_files_written_by_hand_are_read() -> None:
    codec = _codec(
        'syntax = "proto3"; package shop;'
        " message Order { uint64 id = 1; Color color = 2; map<string, Item> items = 3;"
        " oneof payment { string card = 4; int32 cash = 5; } enum Color { RED = 0; BLUE = 2; } }"
        " message Item { int32 count = 1; }",
        {},
    )
    schema = connect_schema(codec.descriptor((0,)), PLAIN)
    assert [each.name for each in schema.fields] == ["payment_0", "id", "color", "items"]
    message: Any = codec.message_class((0,))()
    message.id, message.color, message.card = 2**64 - 1, 2, "1234"
    message.items["pen"].count = 3
    value = value_of(message, schema, PLAIN)
    assert value.get("id") == -1
    assert value.get("color") == "BLUE"
    assert value.get("payment_0").get("card") == "1234"
    assert value.get("items")["pen"].get("count") == 3
    again: Any = codec.message_class((0,))()
    fill(again, schema, value, PLAIN)
    assert again == message
    text, _ = schema_text(schema, PLAIN)
    assert "oneof payment" in text
    assert "uint64 id = 1;" in text


def test_unions_can_be_flattened() -> None:
    codec = _codec('syntax = "proto3"; message A { oneof u { string s = 1; int32 i = 2; } }', {})
    options = Options(flatten_unions=True)
    schema = connect_schema(codec.descriptor((0,)), options)
    message: Any = codec.message_class((0,))()
    message.i = 0
    value = value_of(message, schema, options)
    assert (value.get("s"), value.get("i")) == (None, 0)


@pytest.mark.parametrize(
    "schema", [array(STRING), struct({"a": array(array(STRING))}), struct({"a-b": STRING})]
)
def test_what_protobuf_cannot_express_is_refused(schema: Schema) -> None:
    with pytest.raises(DataError):
        schema_text(schema, PLAIN)


def test_recursive_messages_are_refused() -> None:
    codec = _codec('syntax = "proto3"; message A { A a = 1; }', {})
    with pytest.raises(DataError, match="contains itself"):
        connect_schema(codec.descriptor((0,)), PLAIN)


def test_types_of_proto2() -> None:
    codec = _codec('syntax = "proto2"; message A { optional int32 i = 1; required int64 l = 2; }', {})
    schema = connect_schema(codec.descriptor((0,)), PLAIN)
    message: Any = codec.message_class((0,))()
    message.l = 1
    assert value_of(message, schema, PLAIN).get("i") is None
    assert schema.fields[1].schema.type is Type.INT64
