"""Decode Avro data of flat records into Arrow columns, without a Python object per record.

`FlatAvro.of` returns a decoder if all fields of the writer's schema are primitive types, enums, fixed types
or unions of such a type with null, and if every column has a field that fits it, or none. Other schemas and
columns are decoded record by record (`pipelines/formats/registry`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from moldau.pipelines.arrow import avro_kernel as kernel

_KINDS = {
    "boolean": kernel.BOOLEAN,
    "int": kernel.VARINT,
    "long": kernel.VARINT,
    "float": kernel.FLOAT,
    "double": kernel.DOUBLE,
    "string": kernel.TEXT,
    "bytes": kernel.TEXT,
    "enum": kernel.VARINT,
    "fixed": kernel.FIXED,
}
#: Logical types that have no effect on the bytes of a column.
_PLAIN = (None, "uuid")
_MICROSECONDS = {"timestamp-millis": 1000, "timestamp-micros": 1}


class _Field(NamedTuple):
    kind: str
    logical: str | None
    null_branch: int
    size: int
    symbols: tuple[str, ...]


class Undecodable(Exception):
    """Some text of a batch is not UTF-8, or an enum has no such symbol: decode its records one by one."""


@dataclass(frozen=True, slots=True)
class FlatAvro:
    fields: tuple[_Field, ...]
    #: For each column, the position of its field, -1 if there is none.
    places: tuple[int, ...]
    columns: Any

    @classmethod
    def of(cls, schema: Any, columns: Any) -> FlatAvro | None:
        """Return the decoder of a parsed schema into the fields of an Arrow struct, or None."""
        if not isinstance(schema, dict) or schema.get("type") != "record":
            return None
        fields = [_field(one["type"]) for one in schema["fields"]]
        known = [field for field in fields if field is not None]
        if len(known) < len(fields):
            return None
        names = [one["name"] for one in schema["fields"]]
        places = tuple(names.index(one.name) if one.name in names else -1 for one in columns)
        for place, column in zip(places, columns, strict=True):
            if place >= 0 and _reader(known[place], column.type) is None:
                return None
        return cls(tuple(known), places, columns)

    def decode(self, data: int, starts: Any, ends: Any) -> tuple[Any, Any]:
        """Return the struct of the records at these positions after an address, and the status of each."""
        rows, count = len(starts), len(self.fields)
        table = np.array([(_KINDS[one.kind], one.null_branch, one.size) for one in self.fields], np.int64)
        numbers, lengths = np.empty((count, rows), np.int64), np.empty((count, rows), np.int64)
        status = np.empty(rows, np.uint8)
        kernel.decode(
            *(data, starts.ctypes.data, ends.ctypes.data, rows, table.ctypes.data, count),
            *(numbers.ctypes.data, lengths.ctypes.data, status.ctypes.data),
        )
        good = status == kernel.GOOD
        if not good.all():
            lengths[:, ~good] = -1
        arrays = [
            pa.nulls(rows, column.type)
            if place < 0
            else self._column(data, place, column.type, numbers[place], lengths[place])
            for place, column in zip(self.places, self.columns, strict=True)
        ]
        mask = None if good.all() else pa.array(~good)
        return pa.StructArray.from_arrays(arrays, fields=list(self.columns), mask=mask), status

    def _column(self, data: Any, place: int, kind: Any, numbers: Any, lengths: Any) -> Any:
        read = _reader(self.fields[place], kind)
        if read is None:
            raise TypeError(f"a column of {kind} cannot be read")
        try:
            return read(self.fields[place], kind, data, numbers, lengths)
        except (pa.ArrowInvalid, IndexError) as error:
            raise Undecodable from error


def _field(schema: Any) -> _Field | None:
    """Return a field that the kernel decodes, or None."""
    null_branch = kernel.NOT_NULL
    if isinstance(schema, list):
        if len(schema) != 2 or schema.count("null") != 1:
            return None
        null_branch = schema.index("null")
        schema = schema[1 - null_branch]
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"] if isinstance(schema, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    symbols = tuple(schema.get("symbols", ()))
    return _Field(kind, schema.get("logicalType"), null_branch, int(schema.get("size", 0)), symbols)


Read = Callable[[_Field, Any, Any, Any, Any], Any]


def _reader(field: _Field, kind: Any) -> Read | None:
    """Return how a field becomes a column of a type, or None if that needs its values one by one."""
    if kinds.is_timestamp(kind):
        return _timestamps if field.logical in _MICROSECONDS and field.kind == "long" else None
    if kinds.is_date32(kind):
        return _integers if field.logical == "date" else None
    if field.logical not in _PLAIN:
        return None
    if kinds.is_string(kind):
        return {"string": _texts, "enum": _symbols}.get(field.kind)
    if kinds.is_binary(kind):
        return _texts if field.kind in ("bytes", "fixed") else None
    if kinds.is_boolean(kind):
        return _booleans if field.kind == "boolean" else None
    if kinds.is_float64(kind):
        return _doubles if field.kind in ("float", "double") else None
    if kinds.is_int64(kind):
        return _integers if field.kind in ("int", "long") else None
    return _integers if kinds.is_int32(kind) and field.kind == "int" else None


def _integers(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    return (
        pa.array(numbers, mask=lengths < 0)
        .cast(pa.int64() if kinds.is_int64(kind) else pa.int32())
        .cast(kind)
    )


def _timestamps(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    microseconds = numbers * _MICROSECONDS[field.logical or ""]
    return pa.array(microseconds, pa.timestamp("us"), mask=lengths < 0).cast(kind)


def _booleans(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    return pa.array(numbers != 0, mask=lengths < 0)


def _doubles(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    if field.kind == "double":
        return pa.array(numbers.view(np.float64), mask=lengths < 0)
    return pa.array(numbers.astype(np.int32).view(np.float32).astype(np.float64), mask=lengths < 0)


def _symbols(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    return pa.array(field.symbols, pa.string()).take(pa.array(numbers, mask=lengths < 0))


def _texts(field: _Field, kind: Any, data: Any, numbers: Any, lengths: Any) -> Any:
    rows = len(numbers)
    size = int(np.maximum(lengths, 0).sum())
    offsets, out = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(size)
    numbers, lengths = np.ascontiguousarray(numbers), np.ascontiguousarray(lengths)
    kernel.gather(data, numbers.ctypes.data, lengths.ctypes.data, rows, offsets.address, out.address)
    nulls = lengths < 0
    bits = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    # Casting to text checks that the bytes are UTF-8.
    return pa.Array.from_buffers(pa.binary(), rows, [bits, offsets, out]).cast(kind)
