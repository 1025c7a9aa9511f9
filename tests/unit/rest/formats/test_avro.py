"""Avro's JSON encoding, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.client.registry.codecs.bounds import NestedTooDeeply
from moldau.client.serdes import SerializationError
from moldau.rest.formats.avro import AvroJson


def record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "f", "type": kind}]}


INNER = {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}
TREE = record({"type": "array", "items": "n.R"})


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (record({"type": "long", "logicalType": "timestamp-millis"}), {"f": 1700000000123}),
        (record({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}), {"f": "\x01\xff"}),
        (record({"type": "string", "logicalType": "uuid"}), {"f": "not checked"}),
        (record({"type": "map", "values": ["null", "int"]}), {"f": {"a": {"int": 1}, "b": None}}),
        (record(["null", "string", INNER]), {"f": {"n.S": {"x": 1}}}),
        (record(["string", {"type": "enum", "name": "E", "symbols": ["A"]}]), {"f": {"n.E": "A"}}),
        (record(["string", {"type": "enum", "name": "E", "symbols": ["A"]}]), {"f": {"string": "A"}}),
        (record(["bytes", {"type": "fixed", "name": "F", "size": 1}]), {"f": {"n.F": "\xff"}}),
        (record(["null", {"type": "array", "items": ["null", "string"]}]), {"f": {"array": [None]}}),
        (record("double"), {"f": 1}),
        (record("double"), {"f": "NaN"}),
        (record(["null", "float"]), {"f": {"float": "-Infinity"}}),
        (TREE, {"f": [{"f": []}, {"f": [{"f": []}]}]}),
        (record(["null", "n.R"]), {"f": {"n.R": {"f": None}}}),
        (["null", "int"], {"int": 3}),
        ("bytes", "ab"),
        ("null", None),
    ],
    ids=lambda each: json.dumps(each)[:40],
)
def test_both_directions(schema: Any, data: Any) -> None:
    codec = AvroJson(json.dumps(schema), {})
    assert codec.decode(codec.encode(data)) == data


def test_the_branch_of_a_union_is_the_one_that_is_named() -> None:
    assert AvroJson('["int","long"]', {}).encode({"long": 3}) == b"\x02\x06"
    assert AvroJson('["float","double"]', {}).encode({"double": 1.5})[0] == 2


def test_missing_fields_have_their_defaults() -> None:
    field = {"name": "f", "type": ["null", "int"], "default": None}
    codec = AvroJson(json.dumps({"type": "record", "name": "R", "fields": [field]}), {})
    assert codec.decode(codec.encode({})) == {"f": None}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("int", 1 << 31),
        ("int", True),
        ("int", "1"),
        ("long", 1.0),
        ("string", 1),
        ("boolean", 1),
        ("bytes", "\u1234"),
        ("null", 0),
        ("double", "infinite"),
        (["null", "int"], 3),
        (["null", "int"], {"string": "x"}),
        (["int"], None),
        (record("int"), {}),
        (record("int"), {"f": 1, "g": 2}),
        (record("int"), [1]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, "a"),
        ({"type": "array", "items": "int"}, {}),
    ],
    ids=lambda each: json.dumps(each)[:40],
)
def test_data_that_does_not_fit(schema: Any, data: Any) -> None:
    with pytest.raises((ValueError, SerializationError)):
        AvroJson(json.dumps(schema), {}).encode(data)


def test_deeply_nested_records_are_refused() -> None:
    codec = AvroJson(json.dumps(record(["null", "n.R"])), {})
    with pytest.raises(NestedTooDeeply):
        codec.decode(b"\x02" * 100_000 + b"\0")
    shown: Any = {"f": None}
    for _ in range(100):
        shown = {"f": {"n.R": shown}}
    assert codec.decode(codec.encode(shown)) == shown
