"""Which changes of a JSON schema Confluent's registry calls incompatible, and where it reports them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas import json as json_schemas

_2020 = "https://json-schema.org/draft/2020-12/schema"
_CLOSED = {"additionalProperties": False}
_STRING, _NUMBER, _INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


#: The rule, the previous schema, the new schema, and the incompatible findings.
CASES: list[tuple[str, Any, Any, list[str]]] = [
    ("an integer may become a number", _INTEGER, _NUMBER, []),
    ("a number must not become an integer", _NUMBER, _INTEGER, ["TYPE_NARROWED #/"]),
    ("another type", _STRING, _NUMBER, ["TYPE_CHANGED #/"]),
    ("anything may become the empty schema", _STRING, {}, []),
    ("the empty schema must not become typed", {}, _STRING, ["TYPE_CHANGED #/"]),
    ("false may become anything", {"not": {}, **_object(a=False)}, {"not": {}, **_object(a=_STRING)}, []),
    (
        "an optional property added to an open model",
        _object(a=_STRING),
        _object(a=_STRING, b=_STRING),
        ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b"],
    ),
    ("a property without rules added", _object(a=_STRING), _object(a=_STRING, b={}), []),
    (
        "an optional property added to a closed model",
        _object(a=_STRING) | _CLOSED,
        _object(a=_STRING, b=_STRING) | _CLOSED,
        [],
    ),
    (
        "a required property added to a closed model",
        _object(a=_STRING) | _CLOSED,
        _object(a=_STRING, b=_STRING) | _CLOSED | {"required": ["b"]},
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/b"],
    ),
    (
        "a required property with default added to a closed model",
        _object(a=_STRING) | _CLOSED,
        _object(a=_STRING, b={"type": "string", "default": ""}) | _CLOSED | {"required": ["b"]},
        [],
    ),
    ("a property removed from an open model", _object(a=_STRING, b=_STRING), _object(a=_STRING), []),
    (
        "a property removed from a closed model",
        _object(a=_STRING, b=_STRING) | _CLOSED,
        _object(a=_STRING) | _CLOSED,
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b"],
    ),
    (
        "a property removed that the other properties cover",
        _object(a=_STRING, b=_INTEGER),
        _object(a=_STRING) | {"additionalProperties": _NUMBER},
        ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"],
    ),
    (
        "a property removed that no pattern covers",
        _object(b=_STRING) | _CLOSED,
        {"type": "object", "patternProperties": {"^x": _STRING}} | _CLOSED,
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b"],
    ),
    ("required made optional", _object(a=_STRING) | {"required": ["a"]}, _object(a=_STRING), []),
    (
        "optional made required",
        _object(a=_STRING),
        _object(a=_STRING) | {"required": ["a"]},
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    ("a model opened", _object() | _CLOSED, _object(), []),
    (
        "a model closed",
        _object(),
        _object() | _CLOSED,
        ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"],
    ),
    ("a limit raised", {"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 4}, []),
    (
        "a limit lowered",
        {"type": "string", "maxLength": 4},
        {"type": "string", "maxLength": 3},
        ["MAX_LENGTH_DECREASED #/maxLength"],
    ),
    ("a pattern added", _STRING, {"type": "string", "pattern": "^a"}, ["PATTERN_ADDED #/pattern"]),
    ("a multiple reduced", {"type": "number", "multipleOf": 10}, {"type": "number", "multipleOf": 2.5}, []),
    (
        "a multiple expanded",
        {"type": "number", "multipleOf": 0.5},
        {"type": "number", "multipleOf": 10},
        ["MULTIPLE_OF_EXPANDED #/multipleOf"],
    ),
    ("an enum extended", {"enum": ["a"]}, {"enum": ["b", "a"]}, []),
    ("an enum narrowed", {"enum": ["a", "b"]}, {"enum": ["a"]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ("1 and 1.0 are different constants", {"enum": [1]}, {"enum": [1.0]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ("a type becomes a member of a union", _STRING, {"oneOf": [{"type": "null"}, _STRING]}, []),
    (
        "a union loses a member",
        {"oneOf": [_STRING, {"type": "null"}]},
        {"oneOf": [_STRING]},
        ["SUM_TYPE_NARROWED #/"],
    ),
    (
        "the members of a union match in any order",
        {"oneOf": [_STRING, {"type": "null"}, _INTEGER]},
        {"oneOf": [_NUMBER, _STRING, {"type": "null"}]},
        [],
    ),
    (
        "two members cannot match one",
        {"anyOf": [_INTEGER, {"type": "integer", "title": "t"}]},
        {"anyOf": [_NUMBER, _STRING]},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
    (
        "allOf gains a member",
        {"allOf": [_STRING]},
        {"allOf": [_STRING, {"maxLength": 3}]},
        ["PRODUCT_TYPE_EXTENDED #/"],
    ),
    (
        "items of a tuple added",
        {"type": "array", "items": [_STRING]},
        {"type": "array", "items": [_STRING, _STRING]},
        ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"],
    ),
    ("what is forbidden may shrink", {"not": _NUMBER}, {"not": _INTEGER}, []),
    ("what is forbidden must not grow", {"not": _INTEGER}, {"not": _NUMBER}, ["NOT_TYPE_EXTENDED #/not"]),
    (
        "a definition is compared where it is used",
        {"definitions": {"d": _STRING}, **_object(x={"$ref": "#/definitions/d"})},
        {"definitions": {"d": _NUMBER}, **_object(x={"$ref": "#/definitions/d"})},
        ["TYPE_CHANGED #/properties/x"],
    ),
    (
        "a recursive schema has its findings as root and as target",
        _object(next={"$ref": "#"}, id=_STRING),
        _object(next={"$ref": "#"}, id=_NUMBER),
        [
            "TYPE_CHANGED #/properties/next/properties/next/properties/id",
            "TYPE_CHANGED #/properties/next/properties/id",
            "TYPE_CHANGED #/properties/id",
        ],
    ),
    (
        "up to draft 7, an unknown anchor is the root",
        _object(next={"$ref": "#nowhere"}),
        _object(next={"$ref": "#"}),
        [],
    ),
    (
        "keywords of 2020-12 are joined in the order of a hash map",
        {"type": "boolean", "const": []},
        {"$schema": _2020, "type": ["string"], "pattern": "^a", "maxProperties": 3},
        ["PRODUCT_TYPE_EXTENDED #/", "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
    (
        "unevaluated properties close a model",
        {"$schema": _2020, **_object(a=_STRING), "unevaluatedProperties": False},
        {"$schema": _2020, **_object(a=_STRING, b=_STRING), "unevaluatedProperties": False},
        [],
    ),
    (
        "Connect's bytes may change their type",
        {"type": "string", "connect.type": "bytes"},
        {"type": "number", "connect.type": "bytes"},
        [],
    ),
]

#: What the policy LENIENT permits.
LENIENT: list[tuple[str, Any, Any, list[str]]] = [
    ("an optional property added", _object(a=_STRING), _object(a=_STRING, b=_STRING), []),
    (
        "a required property added",
        _object(),
        _object(b=_STRING) | {"required": ["b"]},
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b"],
    ),
    ("a model closed", _object(), _object() | _CLOSED, []),
    ("another type", _object(a=_STRING), _object(a=_NUMBER), ["TYPE_CHANGED #/properties/a"]),
]


def _findings(previous: Any, current: Any, *, lenient: bool = False) -> list[str]:
    new, old = (json_schemas.parse(json.dumps(schema)) for schema in (current, previous))
    return [f"{found.type} {found.path}" for found in new.incompatibilities(old, lenient=lenient)]


@pytest.mark.parametrize(("previous", "current", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_strict_policy(previous: Any, current: Any, expected: list[str]) -> None:
    assert _findings(previous, current) == expected


@pytest.mark.parametrize(
    ("previous", "current", "expected"), [pytest.param(*c[1:], id=c[0]) for c in LENIENT]
)
def test_lenient_policy(previous: Any, current: Any, expected: list[str]) -> None:
    assert _findings(previous, current, lenient=True) == expected


def test_message_names_the_path_and_both_schemas() -> None:
    new, old = json_schemas.parse('{"type":"string"}'), json_schemas.parse('{"type":"number"}')
    assert [found.message for found in new.incompatibilities(old)] == [
        '{errorType:"TYPE_CHANGED", description:"A type at path \'#/\' is different between the new schema'
        " and the old schema'}"
    ]


def test_recursive_union_does_not_mask_a_change() -> None:
    def schema(first: str, second: str) -> dict[str, Any]:
        def member(kind: str, target: str) -> dict[str, Any]:
            return _object(id={"type": kind}, ref={"oneOf": [{"$ref": f"#/definitions/{target}"}]})

        return {
            "definitions": {"a": member(first, "c"), "b": member(second, "c"), "c": member("integer", "a")},
            **_object(root={"oneOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/b"}]}),
        }

    assert _findings(schema("integer", "boolean"), schema("boolean", "number")) != []
