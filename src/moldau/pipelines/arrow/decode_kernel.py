"""The compiled loops that take records apart: varints, offsets, timestamps, keys and values into columns.

How it works. Plain functions over pointers (`kernels`). `decode_records` takes the records of all batches of
a table (`scan_kernel`) apart, `decode_headers` the headers of those records.

Invariants:

- Nothing is trusted: every read is checked against the end of its record, every record against the end of its
  payload; each step consumes bytes, so every loop ends. A damaged batch gives a code and its number.
- Nothing is written past what the caller has room for: as many rows as the batches announce, as many bytes of
  keys, values and headers as their payloads have.
- Only 64-bit signed numbers: Numba makes floats of sums of signed and unsigned ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined
from moldau.pipelines.arrow.scan_kernel import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BATCH_FIELDS,
    COUNT,
    MAX_TIMESTAMP,
    PAYLOAD_BEGIN,
    PAYLOAD_END,
)
from moldau.protocol.batch_header import TIMESTAMP_TYPE_FLAG

#: What the functions tell.
RESULTS: Final = 9
(
    ROWS,
    KEY_BYTES,
    VALUE_BYTES,
    NULL_KEYS,
    NULL_VALUES,
    HEADERS,
    HEADER_BYTES,
    NULL_HEADERS,
    FAILED_BATCH,
) = range(RESULTS)

#: Why a batch is damaged.
REASONS: Final = (
    "",
    "a record goes past the end of its batch",
    "a field goes past the end of its record",
    "a record has another length than it announces",
    "a record header without a key",
    "there are bytes behind the last record",
)
_OK, _PAST_BATCH, _PAST_RECORD, _LENGTH, _HEADER_KEY, _LEFT_OVER = range(6)

_LARGEST_MS = ((1 << 63) - 1) // 1000
_SMALLEST_MS = -_LARGEST_MS
_LOGICAL = (1 << 63) - 1

#: Makes a 64-bit signed number, which Numba does not always guess.
_int64: Any = np.int64


@inlined
def _varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it, which is -1 if there is none before `end`."""
    if position >= end:
        return 0, -1
    byte = _int64(data[position])
    position += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 127
    shift = 7
    while shift < 70:
        if position >= end:
            return 0, -1
        byte = _int64(data[position])
        position += 1
        if shift == 63 and byte > 1:
            return 0, -1
        value |= (byte & 127) << shift
        if byte < 128:
            return ((value >> 1) & _LOGICAL) ^ -(value & 1), position
        shift += 7
    return 0, -1


@inlined
def _skip_headers(data: Any, position: int, end: int) -> tuple[int, int]:
    """Status and number of the headers that fill a record from `position` to its end."""
    count, position = _varint(data, position, end)
    if position < 0 or count < 0 or count > end - position:
        return _PAST_RECORD, 0
    for _ in range(count):
        length, position = _varint(data, position, end)
        if position < 0 or length > end - position:
            return _PAST_RECORD, 0
        if length < 0:
            return _HEADER_KEY, 0
        position += length
        length, position = _varint(data, position, end)
        if position < 0 or length > end - position:
            return _PAST_RECORD, 0
        if length > 0:
            position += length
    return (_OK if position == end else _LENGTH), count


@inlined
def _microseconds(milliseconds: int) -> int:
    """Times that microseconds cannot tell become the last one they can."""
    return min(max(milliseconds, _SMALLEST_MS), _LARGEST_MS) * 1000


@inlined
def _record(data: Any, position: int, end: int) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """Status, end, timestamp, offset, where and how long key and value are, where and how many headers."""
    length, position = _varint(data, position, end)
    if position < 0 or length < 0 or length > end - position:
        return _PAST_BATCH, 0, 0, 0, 0, 0, 0, 0, 0, 0
    end = position + length
    timestamp, position = _varint(data, position + 1, end)
    if position < 0:
        return _PAST_RECORD, 0, 0, 0, 0, 0, 0, 0, 0, 0
    offset, position = _varint(data, position, end)
    if position < 0:
        return _PAST_RECORD, 0, 0, 0, 0, 0, 0, 0, 0, 0
    key_length, key = _varint(data, position, end)
    if key < 0 or key_length > end - key:
        return _PAST_RECORD, 0, 0, 0, 0, 0, 0, 0, 0, 0
    value_length, value = _varint(data, key + max(key_length, 0), end)
    if value < 0 or value_length > end - value:
        return _PAST_RECORD, 0, 0, 0, 0, 0, 0, 0, 0, 0
    position = value + max(value_length, 0)
    status, headers = _skip_headers(data, position, end)
    return status, end, timestamp, offset, key, key_length, value, value_length, position, headers


@inlined
def _store(row: int, source: Any, position: int, length: int, data: Any, at: int, bits: Any) -> int:
    """Append a field to a column and give the new end of the column's data."""
    if length < 0:
        return at
    for i in range(length):
        data[at + i] = source[position + i]
    bits[row >> 3] |= 1 << (row & 7)
    return at + length


def _decode(
    data: Any,
    batches: Any,
    batch_count: int,
    start: int,
    end: int,
    offsets: Any,
    timestamps: Any,
    timestamp_types: Any,
    header_at: Any,
    key_ends: Any,
    key_data: Any,
    key_bits: Any,
    value_ends: Any,
    value_data: Any,
    value_bits: Any,
    results: Any,
) -> int:
    row = key_at = value_at = null_keys = null_values = header_count = header_bytes = 0
    key_ends[0] = 0
    value_ends[0] = 0
    for index in range(batch_count):
        results[FAILED_BATCH] = index
        base = index * BATCH_FIELDS
        position, payload_end = batches[base + PAYLOAD_BEGIN], batches[base + PAYLOAD_END]
        base_offset, base_timestamp = batches[base + BASE_OFFSET], batches[base + BASE_TIMESTAMP]
        append_timestamp = batches[base + MAX_TIMESTAMP]
        by_broker = batches[base + ATTRIBUTES] & TIMESTAMP_TYPE_FLAG != 0
        for _ in range(batches[base + COUNT]):
            status, position, timestamp, offset, key, key_length, value, value_length, header, headers = (
                _record(data, position, payload_end)
            )
            if status != _OK:
                return status
            offset += base_offset
            if not start <= offset < end:
                continue
            offsets[row] = offset
            timestamps[row] = _microseconds(append_timestamp if by_broker else base_timestamp + timestamp)
            timestamp_types[row] = by_broker
            header_at[row] = header
            key_at = _store(row, data, key, key_length, key_data, key_at, key_bits)
            value_at = _store(row, data, value, value_length, value_data, value_at, value_bits)
            null_keys += key_length < 0
            null_values += value_length < 0
            header_count += headers
            header_bytes += position - header
            row += 1
            key_ends[row] = key_at
            value_ends[row] = value_at
        if position != payload_end:
            return _LEFT_OVER
    results[ROWS] = row
    results[KEY_BYTES] = key_at
    results[VALUE_BYTES] = value_at
    results[NULL_KEYS] = null_keys
    results[NULL_VALUES] = null_values
    results[HEADERS] = header_count
    results[HEADER_BYTES] = header_bytes
    return _OK


def _decode_headers(
    data: Any,
    size: int,
    header_at: Any,
    rows: int,
    list_ends: Any,
    key_ends: Any,
    key_data: Any,
    key_bits: Any,
    value_ends: Any,
    value_data: Any,
    value_bits: Any,
    results: Any,
) -> int:
    """The headers of rows; the positions come from `_decode`, which has checked what lies there."""
    header = key_at = value_at = nulls = 0
    list_ends[0] = 0
    key_ends[0] = 0
    value_ends[0] = 0
    for row in range(rows):
        count, position = _varint(data, header_at[row], size)
        for _ in range(count):
            length, position = _varint(data, position, size)
            key_at = _store(header, data, position, length, key_data, key_at, key_bits)
            length, position = _varint(data, position + length, size)
            value_at = _store(header, data, position, length, value_data, value_at, value_bits)
            position += max(length, 0)
            nulls += length < 0
            header += 1
            key_ends[header] = key_at
            value_ends[header] = value_at
        list_ends[row + 1] = header
    results[KEY_BYTES] = key_at
    results[VALUE_BYTES] = value_at
    results[NULL_HEADERS] = nulls
    return _OK


decode_records = compiled(
    _decode,
    *(BYTES, LONGS, NUMBER, NUMBER, NUMBER, LONGS, LONGS, INTS, LONGS),
    *(INTS, BYTES, BYTES, INTS, BYTES, BYTES, LONGS),
)
decode_headers = compiled(
    _decode_headers,
    *(BYTES, NUMBER, LONGS, NUMBER, INTS, INTS, BYTES, BYTES, INTS, BYTES, BYTES, LONGS),
)
