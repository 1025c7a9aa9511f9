"""Compiled loops that decode record batches (magic 2) into the buffers of Arrow columns.

`scan_batches` reads the headers of all batches of a fetch response into a table. A batch that the reader must
not see (a control batch, or one outside the requested offsets) has no records and an empty payload in the
table. A batch with an impossible length, another magic or more records than its size allows ends the scan;
the next row of the table then holds the base offset of that batch, or -1 if even that is missing.

`decode_records` decodes the records of all batches in the table, `decode_headers` the headers of those
records.

Invariants:

- Input is not trusted: every read is checked against the end of its record and every record against the end
  of its payload; each step consumes bytes, so every loop ends. A corrupt batch yields a status and its index.
- Output stays within the caller's buffers: at most as many rows as the batches announce, and at most as many
  bytes of keys, values and headers as their payloads have.
- All arithmetic is on signed 64-bit integers: Numba turns sums of signed and unsigned integers into floats.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined
from moldau.protocol.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_FLAG,
)

#: The columns of the table of batches.
BATCH_FIELDS: Final = 10
(
    POSITION,
    SIZE,
    CRC,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PAYLOAD_BEGIN,
    PAYLOAD_END,
    COUNT,
) = range(BATCH_FIELDS)

#: Indexes of the kernels' argument `results`; `BATCHES` is the number of valid batches of a scan.
RESULTS: Final = 10
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
    BATCHES,
) = range(RESULTS)

#: The reason for each status that a kernel returns.
REASONS: Final = (
    "",
    "the batch length is invalid",
    "the magic of the batch is not 2",
    "the batch announces more records than fit into its size",
    "a record extends past the end of its batch",
    "a field extends past the end of its record",
    "the length of a record does not match its content",
    "a record header has no key",
    "there are bytes after the last record",
)
(
    _OK,
    _BATCH_LENGTH,
    _FORMAT,
    _COUNT,
    _PAST_BATCH,
    _PAST_RECORD,
    _RECORD_LENGTH,
    _HEADER_KEY,
    _LEFT_OVER,
) = range(len(REASONS))

#: A record has at least a length, attributes, timestamp, offset, key length, value length, header count.
MIN_RECORD_SIZE: Final = 7

_MAX_MS = ((1 << 63) - 1) // 1000
_MIN_MS = -_MAX_MS
_LOGICAL = (1 << 63) - 1

#: Forces a signed 64-bit integer where Numba would infer another type.
_int64: Any = np.int64
_int8: Any = np.int8


@inlined
def _number(data: Any, position: int, size: int) -> int:
    """Return a signed big-endian integer of `size` bytes."""
    value: int = _int64(_int8(data[position]))
    for i in range(1, size):
        value = value << 8 | _int64(data[position + i])
    return value


def _scan(data: Any, size: int, start: int, end: int, table: Any, results: Any) -> int:
    """Fill the table with the batches in `data`, hiding those without records in the range."""
    position = count = 0
    while position < size:
        row = count * BATCH_FIELDS
        table[row + BASE_OFFSET] = -1
        if size - position < BATCH_HEADER_SIZE:
            return _BATCH_LENGTH
        base_offset = _number(data, position, 8)
        table[row + BASE_OFFSET] = base_offset
        batch_size = _number(data, position + 8, 4) + LOG_OVERHEAD
        if data[position + 16] != MAGIC:
            return _FORMAT
        if batch_size < BATCH_HEADER_SIZE or batch_size > size - position:
            return _BATCH_LENGTH
        attributes = _number(data, position + 21, 2)
        last_offset = base_offset + _number(data, position + 23, 4)
        records = _number(data, position + 57, 4)
        visible = attributes & CONTROL_FLAG == 0 and last_offset >= start and base_offset < end
        if attributes & CODEC_MASK == 0 and (
            records < 0 or records * MIN_RECORD_SIZE > batch_size - BATCH_HEADER_SIZE
        ):
            return _COUNT
        table[row + POSITION] = position
        table[row + SIZE] = batch_size
        table[row + CRC] = _number(data, position + 17, 4) & 0xFFFF_FFFF
        table[row + ATTRIBUTES] = attributes
        table[row + BASE_TIMESTAMP] = _number(data, position + 27, 8)
        table[row + MAX_TIMESTAMP] = _number(data, position + 35, 8)
        table[row + PAYLOAD_BEGIN] = position + BATCH_HEADER_SIZE
        position += batch_size
        table[row + PAYLOAD_END] = position if visible else table[row + PAYLOAD_BEGIN]
        table[row + COUNT] = records if visible else 0
        count += 1
        results[BATCHES] = count
    return _OK


@inlined
def _varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it (-1 if it does not end before `end`)."""
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
    """Return the status and the number of the headers from `position` to the end of the record."""
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
    return (_OK if position == end else _RECORD_LENGTH), count


@inlined
def _microseconds(milliseconds: int) -> int:
    """Convert to microseconds; a time out of their range becomes the closest one in it."""
    return min(max(milliseconds, _MIN_MS), _MAX_MS) * 1000


@inlined
def _record(data: Any, position: int, end: int) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """Return status, end, timestamp, offset, position and length of key and value, position and number of
    headers."""
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
    """Append a field to a column and return the new end of the column's data."""
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
    """Decode the headers of rows at the positions that `_decode` returned and has checked."""
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


scan_batches = compiled(_scan, BYTES, NUMBER, NUMBER, NUMBER, LONGS, LONGS)
decode_records = compiled(
    _decode,
    *(BYTES, LONGS, NUMBER, NUMBER, NUMBER, LONGS, LONGS, INTS, LONGS),
    *(INTS, BYTES, BYTES, INTS, BYTES, BYTES, LONGS),
)
decode_headers = compiled(
    _decode_headers,
    *(BYTES, NUMBER, LONGS, NUMBER, INTS, INTS, BYTES, BYTES, INTS, BYTES, BYTES, LONGS),
)
