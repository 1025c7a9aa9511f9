"""Hostile schemas end in a result or in `InvalidSchema`, in bounded time and without the Python stack."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.schemas.schema import InvalidSchema, ParsedSchema, parse

#: Far above what the cases take, so that a busy machine does not fail them; each hung or crashed before.
_MAX_SECONDS = 20.0
_PROTO3 = 'syntax = "proto3";\n'


def _nested(levels: int, opening: str, inner: str, closing: str) -> str:
    return opening * levels + inner + closing * levels


def _union_web(size: int) -> str:
    """Many types whose fields are unions of all of them."""
    names = [f"T{index}" for index in range(size)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    member = {"type": "object", "properties": {"id": {"type": "string"}, "a": union, "b": union}}
    return json.dumps({"definitions": dict.fromkeys(names, member), "properties": {"root": union}})


def _doubled(levels: int) -> str:
    """Definitions that each use the one below twice: the number of paths is exponential."""
    definitions: dict[str, Any] = {"D0": {"type": "string"}}
    for level in range(1, levels):
        below = {"$ref": f"#/definitions/D{level - 1}"}
        definitions[f"D{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return json.dumps(
        {"definitions": definitions, "properties": {"z": {"$ref": f"#/definitions/D{levels - 1}"}}}
    )


def _record(**keys: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [], **keys})


_JSON = {
    "arrays without end": "[" * 200_000,
    "10,000 levels": _nested(10_000, '{"properties":{"a":', "{}", "}}"),
    "249 levels": _nested(249, '{"properties":{"a":', "{}", "}}"),
    "249 levels of allOf": _nested(249, '{"allOf":[', '{"type":"string"}', "]}"),
    "10,000 properties": json.dumps({"properties": {f"p{i}": {"type": "string"} for i in range(10_000)}}),
    "a web of unions": _union_web(40),
    "exponential paths": _doubled(200),
    "a union of 2,000 members": json.dumps({"oneOf": [{"const": i} for i in range(2_000)]}),
    "references in a circle": json.dumps(
        {"definitions": {f"D{i}": {"$ref": f"#/definitions/D{(i + 1) % 500}"} for i in range(500)}}
    ),
    "a backtracking expression": json.dumps(
        {"patternProperties": {"(a+)+$": {"type": "string"}}, "properties": {"a" * 60 + "!": {}}}
    ),
    "an expression of 5,000 groups": json.dumps({"pattern": "(" * 5_000 + ")" * 5_000}),
    "a huge repetition": json.dumps({"pattern": "(((a{1000}){1000}){1000})"}),
    "a number of 100,000 digits": '{"default":' + "9" * 100_000 + "}",
    "a huge exponent": '{"type":"number","multipleOf":1e999999999,"maximum":-1e999999999}',
    "a huge length": (
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string","minLength":1e999999999}'
    ),
    "a remote reference": '{"$ref":"http://192.0.2.1/never"}',
    "an address that is none": '{"$id":"http://[","properties":{"a":{"$ref":"http://[::"}}}',
}
_AVRO = {
    "10,000 arrays": _nested(10_000, '{"type":"array","items":', '"int"', "}"),
    "140 arrays": _nested(140, '{"type":"array","items":', '"int"', "}"),
    "a deep property": _record(x=json.loads(_nested(900, "[", "", "]"))),
    "10,000 fields": _record(fields=[{"name": f"f{i}", "type": "string"} for i in range(10_000)]),
    "a union of 3,000 records": json.dumps(
        [{"type": "record", "name": f"R{i}", "fields": []} for i in range(3_000)]
    ),
    "comments without end": "/*" * 200_000,
    "strings without end": '"\\"' * 100_001,
    "a number of 100,000 digits": '{"type":"int","x":' + "9" * 100_000 + "}",
    "40,000 aliases": _record(aliases=[f"A{i}" for i in range(40_000)]),
    "a type of itself": '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}',
}
_PROTOBUF = {
    "10,000 messages": _PROTO3 + _nested(10_000, "message A {", "", "}"),
    "a deep option": _PROTO3 + "option (a) = " + _nested(10_000, "{a:", "1", "}") + ";",
    "a deep list": _PROTO3 + "option (a) = " + _nested(10_000, "[", "1", "]") + ";",
    "10,000 fields": _PROTO3
    + "message A {"
    + "".join(f"string f{i} = {i + 1};" for i in range(10_000))
    + "}",
    "8,000 messages": _PROTO3 + "".join(f"message M{i} {{ M{i * 7 % 8_000} a = 1; }}" for i in range(8_000)),
    "8,000 options": _PROTO3
    + "message A {"
    + "".join(f'option (confluent.message_meta).tags = "t{i}";' for i in range(8_000))
    + "}",
    "comments without end": _PROTO3 + "/*" * 200_000,
    "a string without end": _PROTO3 + 'option a = "' + '\\"' * 200_000,
    "a huge number": _PROTO3 + "message A { int32 a = " + "9" * 100_000 + "; }",
    "a huge exponent": _PROTO3 + "option (x) = 1e" + "9" * 300 + ";",
    "Base64 that is no descriptor": "QUJD" * 100_000,
    "a descriptor of random bytes": "CgdkZWZhdWx0IgwKAUESBwoBYRgBKAVi",
}


def _exercise(schema_type: str, text: str, references: dict[str, str] | None = None) -> None:
    """Do everything with a schema that a registry does."""
    try:
        schema = parse(schema_type, text, references or {})
    except InvalidSchema:
        return
    other = parse(schema_type, text, references or {})
    steps: list[Callable[[], object]] = [
        lambda: schema.canonical,
        lambda: schema.name,
        lambda: schema.validate(strict=True),
        lambda: schema.normalized().canonical,
        lambda: schema.formatted("serialized"),
        lambda: schema.formatted("resolved"),
        lambda: _compared(schema, other),
    ]
    for step in steps:
        try:
            step()
        except InvalidSchema:
            continue


def _compared(schema: ParsedSchema, other: ParsedSchema) -> None:
    for lenient in (False, True):
        schema.incompatibilities(other, lenient=lenient)


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [
        pytest.param(schema_type, text, id=f"{schema_type}: {name}")
        for schema_type, texts in (("JSON", _JSON), ("AVRO", _AVRO), ("PROTOBUF", _PROTOBUF))
        for name, text in texts.items()
    ],
)
def test_hostile_text_ends_in_time(schema_type: str, text: str) -> None:
    started = time.process_time()
    _exercise(schema_type, text)
    assert time.process_time() - started < _MAX_SECONDS


@pytest.mark.parametrize("levels", [60, 1_000])
def test_chain_of_referenced_messages_is_compared(levels: int) -> None:
    def schema(kind: str) -> ParsedSchema:
        chain = "".join(f"message M{i} {{ M{i - 1} a = 1; M{i - 1} b = 2; }}" for i in range(1, levels))
        reference = f"{_PROTO3}package r; message M0 {{ {kind} x = 1; }}{chain}"
        text = _PROTO3 + f'import "r.proto"; message A {{ r.M{levels - 1} a = 1; }}'
        return parse("PROTOBUF", text, {"r.proto": reference})

    found = schema("string").incompatibilities(schema("int32"))
    assert {each.type for each in found} == {"FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"}


def test_imports_in_a_circle_are_refused_when_linked() -> None:
    references = {
        "a.proto": _PROTO3 + 'import "b.proto"; message A { B b = 1; }',
        "b.proto": _PROTO3 + 'import "a.proto"; message B { A a = 1; }',
    }
    schema = parse("PROTOBUF", _PROTO3 + 'import "a.proto"; message X { A a = 1; }', references)
    with pytest.raises(InvalidSchema, match=r"cyclic import"):
        schema.validate(strict=True)


def test_web_of_unions_with_a_change_is_incompatible() -> None:
    changed = _union_web(40).replace('"id": {"type": "string"}', '"id": {"type": "number"}')
    assert parse("JSON", changed).incompatibilities(parse("JSON", _union_web(40))) != []


def _words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_KEYWORDS = _words(
    "type name namespace fields items values symbols default size properties required additionalProperties"
    " oneOf anyOf allOf not $ref $id $schema definitions $defs enum const minLength multipleOf pattern title"
    " patternProperties dependencies prefixItems unevaluatedProperties aliases logicalType precision"
)
_WORDS = _words(
    "string int record enum array map union fixed object number null R # #/definitions/a a.b decimal"
    " https://json-schema.org/draft/2020-12/schema http://json-schema.org/draft-04/schema#"
)
_DOCUMENTS = st.recursive(
    _SCALARS | _WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_KEYWORDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)
_TOKENS = _words(
    "syntax package import public option message enum oneof map reserved extensions extend service rpc"
    " returns repeated optional required group stream to max string int32 A B a b 1 2 0x1F -1 1.5e3 = ; { }"
    ' [ ] ( ) < > , . : "proto3" \'x\' "google/protobuf/any.proto" edition default json_name // /* */ \\ é'
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(_DOCUMENTS, st.sampled_from(["JSON", "AVRO"]))
def test_any_document_is_a_schema_or_invalid(document: Any, schema_type: str) -> None:
    _exercise(schema_type, json.dumps(document))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_TOKENS, max_size=40).map(" ".join), st.sampled_from(["", _PROTO3, _PROTO3 + "message A {"]))
def test_any_tokens_are_a_schema_or_invalid(tokens: str, prefix: str) -> None:
    _exercise("PROTOBUF", prefix + tokens)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["JSON", "AVRO", "PROTOBUF"]))
def test_any_text_is_a_schema_or_invalid(text: str, schema_type: str) -> None:
    _exercise(schema_type, text)
