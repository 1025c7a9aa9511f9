"""Encode Arrow columns as flat Avro records, without a Python object per record.

The schema is the one that sinks derive: a record whose fields are unions of null and a primitive type, in the
order of the columns. Columns of other types (nested, decimals, times of day) are encoded record by record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from moldau.pipelines.arrow import avro_kernel as kernel
from moldau.pipelines.arrow.columns import binary_column

_MICROSECONDS_PER_MS = 1000
_MAX_SIZE = 2**31 - 1


class _Column(NamedTuple):
    """A number and a length for each row; the number of a text is its position."""

    numbers: Any
    lengths: Any


def is_flat(struct: Any) -> bool:
    """Return whether all columns of a struct can be encoded."""
    return all(_kind(column.type) is not None for column in struct)


def encode_flat(rows: Any, prefix: bytes) -> Any | None:
    """Return the records of a struct array as a binary column; None if they are too large for one."""
    count = len(rows)
    texts = _Texts()
    columns = [texts.column(one) if _is_text(one.type) else _numbers(one) for one in rows.flatten()]
    capacity = texts.size + count * (len(prefix) + kernel.MAX_FIELD_BYTES * len(columns))
    if capacity > _MAX_SIZE:
        return None
    table = np.array([(_kind(one.type), 0, 0) for one in rows.type], np.int64)
    numbers = np.array([one.numbers for one in columns], np.int64)
    lengths = np.array([one.lengths for one in columns], np.int64)
    text, valid = texts.joined(), rows.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    front = np.frombuffer(prefix or b"\0", np.uint8)
    offsets, out = pa.allocate_buffer(4 * (count + 1)), pa.allocate_buffer(capacity)
    size = kernel.encode(
        *(front.ctypes.data, len(prefix), table.ctypes.data, len(columns)),
        *(numbers.ctypes.data, lengths.ctypes.data, text.ctypes.data, valid.ctypes.data, count),
        *(offsets.address, out.address),
    )
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [bits, offsets, out.slice(0, size)])


def _is_text(kind: Any) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_binary(kind))


def _kind(kind: Any) -> int | None:
    if kinds.is_boolean(kind):
        return kernel.BOOLEAN
    if kinds.is_int32(kind) or kinds.is_int64(kind) or kinds.is_date32(kind):
        return kernel.VARINT
    if kinds.is_timestamp(kind):
        return kernel.VARINT if kind.unit == "us" else None
    if kinds.is_float64(kind):
        return kernel.DOUBLE
    return kernel.TEXT if _is_text(kind) else None


def _numbers(column: Any) -> _Column:
    """Return the numbers to write: timestamps in milliseconds, dates in days, doubles as their bits."""
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if kinds.is_float64(kind):
        numbers = column.fill_null(0.0).to_numpy().view(np.int64)
    elif kinds.is_boolean(kind):
        numbers = column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        plain = column.cast(pa.int32()) if kinds.is_date32(kind) else column
        numbers = plain.cast(pa.int64()).fill_null(0).to_numpy()
        if kinds.is_timestamp(kind):
            numbers = numbers // _MICROSECONDS_PER_MS
    return _Column(numbers, np.where(missing, -1, 0))


class _Texts:
    """The bytes of all columns of text, one after the other."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self.size = 0

    def column(self, column: Any) -> _Column:
        found = binary_column("value", column)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        lengths = np.where(missing, -1, np.diff(found.ends))
        positions = found.ends[:-1] - found.ends[0] + self.size
        if found.size:
            source = np.frombuffer(found.owner.buffers()[2], np.uint8)
            self._parts.append(source[found.ends[0] : found.ends[-1]])
            self.size += found.size
        return _Column(positions, lengths)

    def joined(self) -> Any:
        return np.concatenate(self._parts) if self._parts else np.zeros(1, np.uint8)
