"""Avro's JSON encoding ↔ its binary encoding.

A value of a union is an object with the name of its branch, `{"string": "a"}`, or null; bytes are text of the
characters U+0000 to U+00FF; numbers that are not finite are text. Logical types are those that they annotate.
fastavro reads and writes the binary encoding; its own JSON encoding does not accept records that contain
themselves in arrays or maps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from moldau.client.registry.codecs.avro import AvroCodec
from moldau.client.registry.serdes.framing import frame
from moldau.rest.formats.bounds import has_items_without_bytes

_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}
#: JSON has no such numbers; Java's encoder writes them as text.
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NOT_FINITE_NAMES: Final = {str(number): name for name, number in _NOT_FINITE.items()}
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
#: The branches of a union that can hold a value of a Python type, in the order of preference.
_BRANCHES: Final[Mapping[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("double", "float"),
    str: ("string",),
    bytes: ("bytes",),
    list: ("array",),
    dict: ("map",),
}


class AvroJson:
    """Raises `ValueError` and what fastavro raises."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        plain = {name: _without_logical_types(each) for name, each in references.items()}
        self._codec = AvroCodec(_without_logical_types(text), plain)
        self._schema, self._named = self._codec.schema, self._codec.named
        self._unbounded = has_items_without_bytes(self._schema, self._named)

    @property
    def name(self) -> str | None:
        return self._codec.name

    def frame(self, id: int) -> bytes:
        return frame(id)

    def encode(self, data: Any) -> bytes:
        return self._codec.encode(self._value(self._schema, data))

    def decode(self, data: bytes, indexes: tuple[int, ...] = ()) -> Any:
        if self._unbounded:
            raise ValueError("the schema has an array whose items take no bytes, which is not read")
        return self._shown(self._schema, self._codec.decode(data, named_types=True))

    def _value(self, schema: Any, data: Any) -> Any:
        """Return what fastavro writes: unions as pairs of branch and value, bytes as bytes."""
        schema = self._resolved(schema)
        if isinstance(schema, list):
            return self._union_value(schema, data)
        kind = _type(schema)
        if kind == "record" or kind == "error":
            return self._record_value(schema, _checked(data, dict, kind))
        if kind == "array":
            return [self._value(schema["items"], each) for each in _checked(data, list, kind)]
        if kind == "map":
            items = _checked(data, dict, kind).items()
            return {name: self._value(schema["values"], each) for name, each in items}
        return _primitive(kind, data)

    def _record_value(self, schema: Any, data: dict[str, Any]) -> dict[str, Any]:
        fields = {field["name"]: field["type"] for field in schema["fields"]}
        if unknown := sorted(data.keys() - fields.keys()):
            raise ValueError(f"{schema['name']} has no fields {', '.join(unknown)}")
        # fastavro fills in the defaults of missing fields, and refuses those without.
        return {name: self._value(kind, data[name]) for name, kind in fields.items() if name in data}

    def _union_value(self, branches: list[Any], data: Any) -> Any:
        if data is None:
            if "null" not in map(_type, branches):
                raise ValueError("null is not a branch of the union")
            return None
        if not isinstance(data, dict) or len(data) != 1:
            raise ValueError('a value of a union must be null or {"branch": value}')
        [(name, value)] = data.items()
        for branch in branches:
            if self._branch_name(branch) == name:
                return name, self._value(branch, value)
        raise ValueError(f"the union has no branch {name}")

    def _shown(self, schema: Any, value: Any) -> Any:
        """Return a value that fastavro has read as JSON."""
        schema = self._resolved(schema)
        if isinstance(schema, list):
            return self._shown_union(schema, value)
        kind = _type(schema)
        if kind == "record" or kind == "error":
            return {each["name"]: self._shown(each["type"], value[each["name"]]) for each in schema["fields"]}
        if kind == "array":
            return [self._shown(schema["items"], each) for each in value]
        if kind == "map":
            return {name: self._shown(schema["values"], each) for name, each in value.items()}
        if isinstance(value, float) and not math.isfinite(value):
            return _NOT_FINITE_NAMES[str(value)]
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def _shown_union(self, branches: list[Any], value: Any) -> Any:
        if value is None:
            return None
        names = {self._branch_name(branch): branch for branch in branches}
        if isinstance(value, tuple):
            name, value = value
        else:
            name = next(each for each in _BRANCHES[type(value)] if each in names)
        return {name: self._shown(names[name], value)}

    def _resolved(self, schema: Any) -> Any:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _branch_name(self, branch: Any) -> str:
        resolved = self._resolved(branch)
        kind = _type(resolved)
        return str(resolved["name"]) if kind in _NAMED else kind


def _type(schema: Any) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _checked(data: Any, wanted: type, kind: str) -> Any:
    if not isinstance(data, wanted):
        raise ValueError(f"{json.dumps(data)[:100]} is not of the type {kind}")
    return data


def _primitive(kind: str, data: Any) -> Any:
    if kind in _RANGES:
        limit = _RANGES[kind]
        if isinstance(data, bool) or not isinstance(data, int) or not -limit <= data < limit:
            raise ValueError(f"{json.dumps(data)[:100]} is not of the type {kind}")
        return data
    if kind in ("float", "double"):
        if isinstance(data, str) and data in _NOT_FINITE:
            return _NOT_FINITE[data]
        return float(_checked(data, float, kind) if not isinstance(data, int) else data)
    if kind in ("bytes", "fixed"):
        return _checked(data, str, kind).encode("latin-1")
    if kind == "null" and data is not None:
        raise ValueError(f"{json.dumps(data)[:100]} is not null")
    return data if kind == "null" else _checked(data, bool if kind == "boolean" else str, kind)


def _without_logical_types(text: str) -> str:
    def plain(value: dict[str, Any]) -> dict[str, Any]:
        value.pop("logicalType", None)
        return value

    return json.dumps(json.loads(text, object_hook=plain))
