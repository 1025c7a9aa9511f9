"""Schemas that would stall a validator: patterns that backtrack, references that branch."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from moldau.rest.formats.avro import AvroJson
from moldau.rest.formats.json_schema import JsonSchemaJson


def encode(schema: Any, data: Any) -> bytes:
    return JsonSchemaJson(json.dumps(schema), {}).encode(data)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#", "pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": False}, "additionalProperties": False},
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "patternProperties": {"^(a+)+$": False},
            "unevaluatedProperties": False,
        },
    ],
)
def test_patterns_are_searched_in_linear_time(schema: Any) -> None:
    begin = time.monotonic()
    with pytest.raises(Exception, match="not valid at"):
        encode(schema, {"a": "a" * 60 + "!", "a" * 60 + "!": 1})
    assert time.monotonic() - begin < 1


def test_branching_references_are_interrupted() -> None:
    levels = {str(n): {"allOf": [{"$ref": f"#/definitions/{n + 1}"}] * 2} for n in range(40)}
    schema = {"$ref": "#/definitions/0", "definitions": {**levels, "40": {"type": "object"}}}
    begin = time.monotonic()
    with pytest.raises(ValueError, match="takes longer than 1 s"):
        encode(schema, {})
    assert time.monotonic() - begin < 10


def test_patterns_that_need_backtracking_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be searched in linear time"):
        encode({"pattern": "(?=a)a"}, "a")


def test_ordinary_schemas_are_applied() -> None:
    schema = {
        "properties": {"a": {"pattern": "^[a-z]+[0-9]$"}},
        "patternProperties": {"^x": {"type": "null"}},
    }
    assert encode(schema, {"a": "abc1", "x1": None}) == b'{"a":"abc1","x1":null}'
    with pytest.raises(Exception, match="does not match"):
        encode(schema, {"a": "ABC"})


EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": EMPTY},
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
        {"type": "map", "values": {"type": "array", "items": "null"}},
        ["null", {"type": "array", "items": "null"}],
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "e", "type": EMPTY}, {"name": "a", "type": {"type": "array", "items": "E"}}],
        },
    ],
)
def test_arrays_of_nothing_are_not_read(schema: Any) -> None:
    # A count of 2 to the power of 40.
    with pytest.raises(ValueError, match="take no bytes"):
        AvroJson(json.dumps(schema), {}).decode(b"\x80\x80\x80\x80\x80\x80\x01\0")


def test_other_arrays_are_read() -> None:
    tree = '{"type":"record","name":"T","fields":[{"name":"children","type":{"type":"array","items":"T"}}]}'
    assert AvroJson(tree, {}).decode(b"\x02\0\0") == {"children": [{"children": []}]}
