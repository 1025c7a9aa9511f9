"""Large Avro data of few bytes is refused. Without bounds, fastavro would end the process or hang."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.client.registry.codecs.avro import AvroCodec
from moldau.client.registry.codecs.bounds import MAX_LEVELS, NestedTooDeeply, TooManyParts
from moldau.client.serdes import SerializationError


def record(name: str, *fields: tuple[str, Any], **defaults: Any) -> dict[str, Any]:
    shown = [{"name": name, "type": kind} for name, kind in fields]
    shown = [
        {**each, "default": defaults[each["name"]]} if each["name"] in defaults else each for each in shown
    ]
    return {"type": "record", "name": name, "fields": shown}


def codec(schema: Any) -> AvroCodec:
    return AvroCodec(json.dumps(schema))


LIST = record("L", ("next", ["null", "L"]))
TREE = record("T", ("children", {"type": "array", "items": "T"}))
MAPS = record("M", ("below", {"type": "map", "values": "M"}))
DEEP = 100_000


@pytest.mark.parametrize(
    ("schema", "level", "end"),
    [(LIST, b"\x02", b"\0"), (TREE, b"\x02", b"\0"), (MAPS, b"\x02\x00", b"\0")],
    ids=["union", "array", "map"],
)
def test_bytes_are_bounded(schema: Any, level: bytes, end: bytes) -> None:
    with pytest.raises(NestedTooDeeply):
        codec(schema).decode(level * DEEP + end * DEEP)
    # A level of the list is a record and a union.
    assert codec(schema).decode(level * 200 + end * (1 if schema is LIST else 201))


@pytest.mark.parametrize("schema", [LIST, TREE, MAPS], ids=["union", "array", "map"])
def test_values_are_bounded(schema: Any) -> None:
    field = schema["fields"][0]["name"]

    def nested(levels: int) -> Any:
        value: Any = {field: {"next": None, "children": [], "below": {}}[field]}
        for _ in range(levels):
            value = {field: {"next": value, "children": [value], "below": {"k": value}}[field]}
        return value

    assert codec(schema).encode(nested(200))
    with pytest.raises(NestedTooDeeply):
        codec(schema).encode(nested(MAX_LEVELS))
    endless: dict[str, Any] = {}
    endless[field] = {"next": endless, "children": [endless], "below": {"k": endless}}[field]
    with pytest.raises(NestedTooDeeply):
        codec(schema).encode(endless)


def test_a_record_that_always_contains_itself_has_no_data() -> None:
    with pytest.raises(NestedTooDeeply):
        codec(record("R", ("f", "R"))).decode(b"")


def test_defaults_are_levels_too() -> None:
    for kind, default in (("R", {}), (["R", "null"], {}), ({"type": "array", "items": "R"}, [{}])):
        with pytest.raises(NestedTooDeeply):
            codec(record("R", ("f", kind), f=default)).encode({})
    tree = record("R", ("f", ["null", "R"]), ("g", {"type": "map", "values": "R"}), f=None, g={})
    assert codec(tree).encode({}) == b"\0\0"


def test_a_long_chain_of_names_is_bounded() -> None:
    chain = [record("R0"), *(record(f"R{number}", ("f", f"R{number - 1}")) for number in range(1, 8000))]
    long = codec(chain)
    with pytest.raises(NestedTooDeeply):
        long.decode(b"\xfe\x7c")
    assert long.decode(b"\x06") == {"f": {"f": {"f": {}}}}


def test_data_of_a_recursive_schema_is_read_and_written() -> None:
    fixed, enum = {"type": "fixed", "name": "F", "size": 2}, {"type": "enum", "name": "E", "symbols": ["A"]}
    primitives = [(kind, kind) for kind in ("boolean", "int", "long", "float", "double", "string", "bytes")]
    items = {"type": "array", "items": ["null", "n.T", "n.F", enum]}
    schema = record("n.T", *primitives, ("x", fixed), ("m", {"type": "map", "values": "n.T"}), ("c", items))
    leaf: dict[str, Any] = {
        "boolean": True,
        "int": -1,
        "long": 1 << 60,
        "float": 0.5,
        "double": -2.0,
        "string": "é" * 100,
        "bytes": b"\xff",
        "x": b"ab",
        "m": {},
        "c": [],
    }
    value = {**leaf, "m": {"k": leaf}, "c": [None, {**leaf, "c": [b"zz", "A"]}, *[None] * 200]}
    tree = codec(schema)
    assert tree.decode(tree.encode(value)) == value
    assert tree.decode(tree.encode(value), codec({**schema, "fields": schema["fields"][:3]}))["int"] == -1
    for end in (0, 1, 5, 50, 200):
        with pytest.raises(SerializationError, match="ends within a value"):
            tree.decode(tree.encode(value)[:end])


def test_values_that_take_no_bytes_are_bounded() -> None:
    nulls = record("A", ("a", {"type": "array", "items": "null"}))
    with pytest.raises(TooManyParts):
        codec(nulls).decode(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x0f\0")
    assert codec(nulls).decode(b"\x06\0") == {"a": [None] * 3}
    # Each type has two of the one before: the last is 2⁴⁰ records, in one byte.
    doubled = [record("R0"), *(record(f"R{n}", *((f, f"R{n - 1}") for f in "ab")) for n in range(1, 41))]
    with pytest.raises(TooManyParts):
        codec(doubled).decode(b"\x50")
    assert codec(doubled).decode(b"\x02") == {"a": {}, "b": {}}
    wide = record("W", *((f"f{number}", "int") for number in range(5000)))
    assert len(codec(wide).decode(b"\0" * 5000)) == 5000


def test_defaults_that_double_are_bounded() -> None:
    def twice(number: int) -> dict[str, Any]:
        kind = {"type": "array", "items": f"R{number - 1}"}
        return record(f"R{number}", ("f", kind), f=[{}, {}])

    doubled = [record("R0"), *(twice(number) for number in range(1, 41))]
    with pytest.raises(TooManyParts):
        codec(doubled).encode({})


@pytest.mark.parametrize("data", [b"\x04", b"\x03", b"\xff" * 20], ids=["branch", "negative", "varint"])
def test_bytes_that_are_not_of_the_schema(data: bytes) -> None:
    with pytest.raises(SerializationError, match="not of this Avro schema"):
        codec(LIST).decode(data)
