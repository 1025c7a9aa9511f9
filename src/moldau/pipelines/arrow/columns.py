"""The buffers of Arrow columns as the kernel reads them: ends of fields, bytes, validity bitmap.

Columns of bytes or text may be binary, string, their large and view variants, fixed-size binary, or
dictionaries of these. Other types raise an error that names the column.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from moldau.base.errors import ErrorCode, KafkaError

_ALL_SET: Final = 0xFF


class BinaryColumn(NamedTuple):
    """`shift` is the position of the first bit, -1 for an absent column. `owner` keeps the memory alive."""

    ends: Any
    data: int
    bits: Any
    shift: int
    size: int
    owner: Any

    def arguments(self) -> tuple[int, int, int, int]:
        return self.ends.ctypes.data, self.data, self.bits.ctypes.data, self.shift


def absent(rows: int) -> BinaryColumn:
    """Return a column that is absent, or null in every row."""
    nothing = np.zeros(rows + 1, np.int64)
    return BinaryColumn(nothing, 0, np.zeros(1, np.uint8), -1, 0, None)


def binary_column(name: str, column: Any) -> BinaryColumn:
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count == len(column):
        return absent(len(column))
    column = _with_offsets(name, column)
    width = np.int64 if kinds.is_large_binary(column.type) or kinds.is_large_string(column.type) else np.int32
    bits, offsets, data = column.buffers()
    begin = column.offset
    ends = np.frombuffer(offsets, width, len(column) + 1, begin * np.dtype(width).itemsize).astype(np.int64)
    address = 0 if data is None else data.address
    return BinaryColumn(ends, address, *validity(bits, begin, len(column)), int(ends[-1] - ends[0]), column)


def validity(bits: Any, begin: int, rows: int) -> tuple[Any, int]:
    """Return the validity bitmap of a column and the position of its first bit."""
    if bits is None:
        return np.full((rows + 7) // 8 + 1, _ALL_SET, np.uint8), 0
    return np.frombuffer(bits, np.uint8), begin


def _with_offsets(name: str, column: Any) -> Any:
    kind = column.type
    if kinds.is_binary(kind) or kinds.is_string(kind):
        return column
    if kinds.is_large_binary(kind) or kinds.is_large_string(kind):
        return column
    if kinds.is_binary_view(kind) or kinds.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    if kinds.is_string_view(kind):
        return column.cast(pa.large_string())
    raise KafkaError(
        ErrorCode.INVALID_RECORD, f"Column {name} must be binary or string, but is {kind}: cast it first"
    )


def int_column(name: str, column: Any) -> tuple[Any, Any, int]:
    """Return 32-bit integers, their validity bitmap and the position of its first bit."""
    if not kinds.is_integer(column.type):
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Column {name} must be int, but is {column.type}: cast it first"
        )
    column = column.cast(pa.int32())
    bits, data = column.buffers()
    numbers = np.frombuffer(data, np.int32, len(column), 4 * column.offset)
    return (numbers, *validity(bits, column.offset, len(column)))


def timestamp_column(column: Any, now_ms: int) -> Any:
    """Return milliseconds since 1970; `now_ms` for null."""
    if not kinds.is_timestamp(column.type) and not kinds.is_integer(column.type):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Column timestamp must be timestamp, but is {column.type}: cast it first",
        )
    per_ms = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}[getattr(column.type, "unit", "ms")]
    missing = column.is_null().to_numpy(zero_copy_only=False)
    numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
    # Round down, also before 1970.
    milliseconds = numbers * per_ms if per_ms > 0 else numbers // -per_ms
    if column.null_count:
        milliseconds = np.where(missing, now_ms, milliseconds)
    if len(milliseconds) and milliseconds.min() < 0:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "A row has a timestamp before 1970, which Kafka does not support"
        )
    return np.ascontiguousarray(milliseconds, np.int64)


class HeaderColumn(NamedTuple):
    """First header of each row in `names` and `contents`, and the number of its headers."""

    begins: Any
    counts: Any
    names: BinaryColumn
    contents: BinaryColumn
    number: int

    def arguments(self) -> tuple[int, ...]:
        places = self.begins.ctypes.data, self.counts.ctypes.data
        return (*places, *self.names.arguments()[:2], *self.contents.arguments())


def no_headers() -> HeaderColumn:
    nothing = absent(0)
    return HeaderColumn(nothing.ends, nothing.ends, nothing, nothing, 0)


def header_column(column: Any) -> HeaderColumn:
    """Return the headers of a column of lists of structs of key and value; null is an empty list."""
    kind = column.type
    is_list = kinds.is_list(kind) or kinds.is_large_list(kind)
    if not is_list or not kinds.is_struct(kind.value_type) or kind.value_type.num_fields != 2:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Column headers must be array<struct<key: string, value: binary>>, but is {kind}",
        )
    ends = column.offsets.to_numpy().astype(np.int64)
    counts = np.diff(ends)
    if column.null_count:
        counts = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, counts)
    number = int(counts.sum())
    if number == 0:
        return no_headers()
    pairs = column.values
    names, contents = pairs.field(0), pairs.field(1)
    if pairs.null_count or names.null_count:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A row has a header without a key")
    return HeaderColumn(
        ends, np.ascontiguousarray(counts), binary_column("headers", names), _contents(contents), number
    )


def _contents(column: Any) -> BinaryColumn:
    found = binary_column("headers", column)
    if found.shift >= 0:
        return found
    return found._replace(bits=np.zeros(len(column) // 8 + 1, np.uint8), shift=0)
