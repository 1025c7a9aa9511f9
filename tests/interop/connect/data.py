"""Generated schemas, values and records; the same ones for the same seed."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.logical import EPOCH
from moldau.pipelines.connect.data.numbers import float32
from moldau.pipelines.connect.data.records import ConnectRecord, SinkRecord, SourceRecord
from moldau.pipelines.connect.data.schema import Schema, Type, array, map_of, struct
from moldau.pipelines.connect.data.struct import Struct

_WIDTHS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_PRIMITIVES = [
    *_WIDTHS,
    *(Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES),
]
_STRINGS = [
    "",
    "a",
    "42",
    "-7",
    "300",
    "3.5",
    "true",
    "TRUE",
    "2020-02-29",
    "ünïcode",
    'q"\\\n\t\x01\x1f',
    "1e3",
]
_FLOATS = [0.0, -0.0, 1.5, -2.25, 0.001, 1e10, 12345678.5, 1e-5, 300.75, float("inf"), float("nan")]
_NAMES = "abcdef"


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def schema(self, depth: int = 2) -> Schema:
        chosen = self.random.random()
        if depth and chosen < 0.25:
            return self.struct_schema(depth - 1)
        if depth and chosen < 0.33:
            return array(self.schema(depth - 1), **self._properties())
        if depth and chosen < 0.40:
            keys = Schema(self.random.choice([Type.STRING, Type.INT32]))
            return map_of(keys, self.schema(depth - 1), **self._properties())
        return self.primitive_schema()

    def primitive_schema(self) -> Schema:
        chosen = self.random.random()
        if chosen < 0.12:
            plain = logical.decimal_schema(self.random.choice([0, 2, 4]))
        elif chosen < 0.36:
            plain = self.random.choice([logical.DATE, logical.TIME, logical.TIMESTAMP])
        else:
            plain = Schema(self.random.choice(_PRIMITIVES))
        plain = plain.replace(optional=self.random.random() < 0.5)
        if self.random.random() < 0.25:
            return plain.replace(default=self.value(plain.replace(optional=False)))
        return plain

    def _properties(self) -> dict[str, Any]:
        properties: dict[str, Any] = {"optional": self.random.random() < 0.4}
        if self.random.random() < 0.3:
            properties |= {"name": "org.example.Name", "version": self.random.randrange(5)}
        if self.random.random() < 0.2:
            properties |= {"doc": "what it is", "parameters": {"p": "1", "q": "2"}}
        return properties

    def struct_schema(self, depth: int = 2) -> Schema:
        names = self.random.sample(_NAMES, self.random.randint(1, 5))
        return struct([(name, self.schema(depth)) for name in names], **self._properties())

    def value(self, schema: Schema, one_entry: bool = False) -> Any:
        if schema.optional and self.random.random() < 0.2:
            return None
        if schema.name in (
            logical.DECIMAL_NAME,
            logical.DATE_NAME,
            logical.TIME_NAME,
            logical.TIMESTAMP_NAME,
        ):
            return self._logical(schema)
        if schema.type is Type.STRUCT:
            found = Struct(schema)
            found.values = [self._field(field.schema, one_entry) for field in schema.fields]
            return found
        if schema.type is Type.ARRAY and schema.value_schema:
            return [self.value(schema.value_schema, one_entry) for _ in range(self.random.randrange(3))]
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            entries = self.random.randrange(2 if one_entry else 3)
            keys = [self.value(schema.key_schema) for _ in range(entries)]
            return {key: self.value(schema.value_schema, one_entry) for key in keys}
        return self._primitive(schema.type)

    def _field(self, schema: Schema, one_entry: bool) -> Any:
        """A field with a default may be unset."""
        if schema.default is not None and self.random.random() < 0.4:
            return None
        return self.value(schema, one_entry)

    def _logical(self, schema: Schema) -> Any:
        if schema.name == logical.DECIMAL_NAME:
            return logical.decimal_of(self.random.randint(-(10**6), 10**12), logical.decimal_scale(schema))
        if schema.name == logical.DATE_NAME:
            return EPOCH + timedelta(days=self.random.randint(-1000, 30000))
        if schema.name == logical.TIME_NAME:
            return EPOCH + timedelta(milliseconds=self.random.randrange(86_400_000))
        return EPOCH + timedelta(milliseconds=self.random.randint(-(10**11), 4 * 10**12))

    def _primitive(self, kind: Type) -> Any:
        if kind in _WIDTHS:
            bits = self.random.randrange(_WIDTHS[kind])
            return self.random.choice(
                [0, 1, -1, self.random.getrandbits(bits), -self.random.getrandbits(bits)]
            )
        if kind is Type.FLOAT32:
            return float32(self.random.choice(_FLOATS))
        if kind is Type.FLOAT64:
            return self.random.choice(_FLOATS)
        if kind is Type.BOOLEAN:
            return self.random.random() < 0.5
        if kind is Type.STRING:
            return self.random.choice(_STRINGS)
        return self.random.randbytes(self.random.randrange(5))

    def schemaless(self, depth: int = 2, one_entry: bool = False) -> Any:
        chosen = self.random.random()
        if depth and chosen < 0.2:
            return self.map(depth - 1, one_entry)
        if depth and chosen < 0.3:
            return [self.schemaless(depth - 1, one_entry) for _ in range(self.random.randrange(3))]
        if chosen < 0.4:
            return None
        kind = self.random.choice([Type.INT64, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES])
        return self._primitive(kind)

    def map(self, depth: int = 2, one_entry: bool = False) -> dict[str, Any]:
        names = self.random.sample(_NAMES, self.random.randint(0, 1 if one_entry else 5))
        return {name: self.schemaless(depth, one_entry) for name in names}

    def record(self) -> ConnectRecord:
        common: dict[str, Any] = {
            "topic": self.random.choice(["orders", "orders-eu-1", "a.b", "x"]),
            "partition": self.random.randrange(3),
            "timestamp": self.random.choice([None, 0, 1_600_000_000_123, 1_709_210_096_789]),
            "headers": self._headers(),
        }
        for part in ("key", "value"):
            common[f"{part}_schema"], common[part] = self._part()
        if self.random.random() < 0.3:
            return SourceRecord(**common)
        return SinkRecord(offset=self.random.randrange(100), **common)

    def _part(self) -> tuple[Schema | None, Any]:
        chosen = self.random.random()
        if chosen < 0.45:
            schema = self.struct_schema()
            return schema, self.value(schema)
        if chosen < 0.6:
            schema = self.schema(1)
            return schema, self.value(schema)
        return None, self.map() if chosen < 0.9 else self.schemaless(1)

    def _headers(self) -> Headers:
        headers = Headers()
        for name in self.random.sample(["h", "i", "h"], self.random.randrange(3)):
            schema = self.primitive_schema().replace(default=None)
            headers.append(name, schema, self.value(schema))
        return headers
