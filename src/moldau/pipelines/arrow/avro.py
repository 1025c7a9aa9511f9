"""Decode Avro data of flat records into Arrow columns, without a Python object per record.

`FlatAvro.of` returns a decoder if all fields of the writer's schema are primitive types, enums, fixed types,
records of such fields, or unions of one of these with null, and if every column has a field that fits it, or
none. Schemas with arrays, maps and other unions are decoded record by record (`pipelines/formats/registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    "record": kernel.RECORD,
}
_MAX_DEPTH = 8
#: Maximum number of lines of the kernel's table: a record that is used by name has its lines at every use.
_MAX_LINES = 1_000
#: Logical types that have no effect on the bytes of a column.
_PLAIN = (None, "uuid")
_MICROSECONDS = {"timestamp-millis": 1000, "timestamp-micros": 1}


class _Field(NamedTuple):
    kind: str
    logical: str | None
    null_branch: int
    size: int
    symbols: tuple[str, ...]
    #: The fields of a record, by name.
    children: tuple[tuple[str, _Field], ...] = ()

    @property
    def lines(self) -> list[tuple[int, int, int]]:
        """The lines of the kernel's table: this field, and those inside it."""
        inner = [line for _, child in self.children for line in child.lines]
        return [(_KINDS[self.kind], self.null_branch, len(inner) if self.children else self.size), *inner]


class _Plan(NamedTuple):
    """The origin of a column: the field at a line of the table, or nulls."""

    kind: Any
    field: _Field | None = None
    line: int = 0
    children: tuple[_Plan, ...] = ()


class Undecodable(Exception):
    """A value of a batch has no place in its column: decode the records one by one.

    A text is not UTF-8, an enum has no such symbol, or a timestamp is out of range.
    """


@dataclass(frozen=True, slots=True)
class FlatAvro:
    root: _Plan
    table: Any

    @classmethod
    def of(cls, schema: Any, columns: Any, named: Mapping[str, Any] | None = None) -> FlatAvro | None:
        """Return the decoder of a parsed schema into an Arrow struct, or None.

        `named` has the types that the schema refers to by name.
        """
        field = _Fields(named or {}).field(schema)
        if field is None or field.kind != "record" or field.null_branch != kernel.NOT_NULL:
            return None
        plan = _plan(field, columns, 0)
        # The record itself has no line.
        return None if plan is None else cls(plan, np.array(field.lines[1:], np.int64).reshape(-1, 3))

    def decode(self, data: int, starts: Any, ends: Any) -> tuple[Any, Any]:
        """Return the struct of the records at these positions after an address, and the status of each."""
        rows, count = len(starts), len(self.table)
        # The first line is the record itself, which is the sum of its fields.
        numbers, lengths = np.zeros((count + 1, rows), np.int64), np.zeros((count + 1, rows), np.int64)
        status = np.empty(rows, np.uint8)
        kernel.decode(
            *(data, starts.ctypes.data, ends.ctypes.data, rows, self.table.ctypes.data, count),
            *(numbers[1:].ctypes.data, lengths[1:].ctypes.data, status.ctypes.data),
        )
        good = status == kernel.GOOD
        if not good.all():
            lengths[:, ~good] = -1
        try:
            return _array(self.root, data, numbers, lengths), status
        except (pa.ArrowInvalid, IndexError) as error:
            raise Undecodable from error


def _array(plan: _Plan, data: int, numbers: Any, lengths: Any) -> Any:
    field, rows = plan.field, lengths.shape[1]
    if field is None:
        return pa.nulls(rows, plan.kind)
    if field.kind != "record":
        read = _reader(field, plan.kind)
        if read is None:
            raise TypeError(f"a column of {plan.kind} cannot be read")
        return read(field, plan.kind, data, numbers[plan.line], lengths[plan.line])
    arrays = [_array(child, data, numbers, lengths) for child in plan.children]
    missing = lengths[plan.line] < 0
    mask = pa.array(missing) if missing.any() else None
    return pa.StructArray.from_arrays(arrays, fields=list(plan.kind), mask=mask)


def _plan(field: _Field, kind: Any, line: int) -> _Plan | None:
    """Return how a field becomes a column, or None if that needs its values one by one."""
    if field.kind != "record":
        return None if _reader(field, kind) is None else _Plan(kind, field, line)
    if not kinds.is_struct(kind) or kind.num_fields == 0:
        return None
    lines: dict[str, tuple[_Field, int]] = {}
    next_line = line + 1
    for name, child in field.children:
        lines[name] = (child, next_line)
        next_line += len(child.lines)
    children = [
        _plan(lines[column.name][0], column.type, lines[column.name][1])
        if column.name in lines
        else _Plan(column.type)
        for column in kind
    ]
    found = tuple(child for child in children if child is not None)
    return _Plan(kind, field, line, found) if len(found) == len(children) else None


class _Fields:
    """Builds the fields that the kernel decodes."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        #: The records around the field: one that contains itself has no end.
        self._open: list[str] = []
        self._lines = 0

    def field(self, schema: Any) -> _Field | None:
        """Return a field that the kernel decodes, or None."""
        self._lines += 1
        null_branch = kernel.NOT_NULL
        if isinstance(schema, list):
            if len(schema) != 2 or schema.count("null") != 1:
                return None
            null_branch = schema.index("null")
            schema = schema[1 - null_branch]
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        kind = schema["type"] if isinstance(schema, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS or self._lines > _MAX_LINES:
            return None
        if kind == "record":
            children = self._children(schema)
            return _Field(kind, None, null_branch, 0, (), children) if children else None
        symbols = tuple(schema.get("symbols", ()))
        return _Field(kind, schema.get("logicalType"), null_branch, int(schema.get("size", 0)), symbols)

    def _children(self, record: Any) -> tuple[tuple[str, _Field], ...] | None:
        name = record["name"]
        if name in self._open or len(self._open) >= _MAX_DEPTH:
            return None
        self._open.append(name)
        children = []
        for one in record["fields"]:
            child = self.field(one["type"])
            if child is None:
                return None
            children.append((one["name"], child))
        self._open.pop()
        return tuple(children)


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
    factor, missing = _MICROSECONDS[field.logical or ""], lengths < 0
    largest = (2**63 - 1) // factor
    if factor > 1 and (((numbers > largest) | (numbers < -largest)) & ~missing).any():
        raise Undecodable
    return pa.array(numbers * factor, pa.timestamp("us"), mask=missing).cast(kind)


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
