"""The compiled loop that makes records of columns: which batch, and the bytes.

How it works. Every row has a slot, which is a partition of a topic (`slots_kernel`). `encode_rows` sorts the
rows by slot, keeping their order, and writes the records of each slot one after the other, with room for a
header before every batch; a table says where the batches are.

Invariants:

- Only 64-bit signed numbers: Numba makes floats of sums of signed and unsigned ones.
- Nothing is written past what the caller has room for: at most `ROW_OVERHEAD` bytes per row and
  `HEADER_OVERHEAD` per record header beside the keys and values themselves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined
from moldau.pipelines.arrow.slots_kernel import is_set

#: Length 5, attributes 1, timestamp 10, offset 5, key length 5, value length 5, number of headers 5.
ROW_OVERHEAD: Final = 36
HEADER_OVERHEAD: Final = 10
#: What is told of a batch: a row of these numbers.
BATCH_FIELDS: Final = 6
SLOT, BEGIN, END, COUNT, BASE_TIMESTAMP, MAX_TIMESTAMP = range(BATCH_FIELDS)

#: Makes a 64-bit signed number, which Numba does not always guess.
_int64: Any = np.int64
_BATCH_HEADER = 61


@inlined
def _varint_size(value: int) -> int:
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag >= 0 and zigzag < 128:
        return 1
    size = 1
    # The top bit may be set: a logical shift, which signed numbers do not have.
    zigzag = (zigzag >> 7) & 0x01FF_FFFF_FFFF_FFFF
    while zigzag:
        size += 1
        zigzag >>= 7
    return size


@inlined
def _put_varint(out: Any, at: int, value: int) -> int:
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag >= 0 and zigzag < 128:
        out[at] = zigzag
        return at + 1
    out[at] = (zigzag & 127) | 128
    at += 1
    zigzag = (zigzag >> 7) & 0x01FF_FFFF_FFFF_FFFF
    while zigzag >= 128:
        out[at] = (zigzag & 127) | 128
        at += 1
        zigzag >>= 7
    out[at] = zigzag
    return at + 1


@inlined
def _put_field(out: Any, at: int, data: Any, begin: int, length: int) -> int:
    """A length and as many bytes; -1 and none for null."""
    at = _put_varint(out, at, length)
    for i in range(length):
        out[at + i] = data[begin + i]
    return at + max(length, 0)


@inlined
def _length(ends: Any, bits: Any, shift: int, index: int) -> Any:
    """How long a field is; -1 for null. A shift of -1: the column is not there."""
    if shift < 0 or not is_set(bits, index + shift):
        return -1
    return _int64(ends[index + 1] - ends[index])


@inlined
def _field_size(length: int) -> int:
    return _varint_size(length) + max(length, 0)


@inlined
def _sort_rows(rows: int, slot_count: int, slots: Any, slot_rows: Any, order: Any) -> None:
    """Rows by slot, in their order; `slot_rows` becomes where the rows of each slot end."""
    begin = _int64(0)
    for slot in range(slot_count):
        count = slot_rows[slot]
        slot_rows[slot] = begin
        begin += count
    for row in range(rows):
        place = _int64(slots[row])
        order[slot_rows[place]] = row
        slot_rows[place] += 1


@inlined
def _open(batches: Any, batch: int, slot: int, begin: int, timestamp: int) -> None:
    batches[batch + SLOT] = slot
    batches[batch + BEGIN] = begin
    batches[batch + BASE_TIMESTAMP] = timestamp


@inlined
def _close(batches: Any, batch: int, end: int, count: int, max_timestamp: int) -> None:
    if batch >= 0:
        batches[batch + END] = end
        batches[batch + COUNT] = count
        batches[batch + MAX_TIMESTAMP] = max_timestamp


def _encode(
    rows: int,
    slot_count: int,
    slots: Any,
    slot_rows: Any,
    order: Any,
    timestamps: Any,
    key_ends: Any,
    key_data: Any,
    key_bits: Any,
    key_shift: int,
    value_ends: Any,
    value_data: Any,
    value_bits: Any,
    value_shift: int,
    header_begins: Any,
    header_counts: Any,
    name_ends: Any,
    name_data: Any,
    content_ends: Any,
    content_data: Any,
    content_bits: Any,
    content_shift: int,
    batch_bytes: int,
    out: Any,
    batches: Any,
) -> Any:
    """The number of batches, whose places and properties are in `batches`."""
    _sort_rows(rows, slot_count, slots, slot_rows, order)
    at = _int64(0)
    batch, current = _int64(-BATCH_FIELDS), _int64(-1)
    begin = base_timestamp = max_timestamp = delta = _int64(0)
    for index in range(rows):
        row = _int64(order[index])
        key_length = _length(key_ends, key_bits, key_shift, row)
        value_length = _length(value_ends, value_bits, value_shift, row)
        headers = header_counts[row] if content_shift >= 0 else _int64(0)
        first_header = header_begins[row] if content_shift >= 0 else _int64(0)
        body = 1 + _field_size(key_length) + _field_size(value_length) + _varint_size(headers)
        end = first_header + headers
        for header in range(first_header, end):
            body += _field_size(name_ends[header + 1] - name_ends[header])
            body += _field_size(_length(content_ends, content_bits, content_shift, header))
        slot, timestamp = _int64(slots[row]), timestamps[row]
        grown = at + ROW_OVERHEAD + body - begin
        if slot != current or grown > batch_bytes:
            _close(batches, batch, at, delta, max_timestamp)
            batch += BATCH_FIELDS
            _open(batches, batch, slot, at, timestamp)
            current, begin, base_timestamp, max_timestamp = slot, at, timestamp, timestamp
            at += _BATCH_HEADER
            delta = _int64(0)
        max_timestamp = max(max_timestamp, timestamp)
        body += _varint_size(timestamp - base_timestamp) + _varint_size(delta)
        at = _put_varint(out, at, body)
        out[at] = 0
        at = _put_varint(out, at + 1, timestamp - base_timestamp)
        at = _put_varint(out, at, delta)
        at = _put_field(out, at, key_data, key_ends[row], key_length)
        at = _put_field(out, at, value_data, value_ends[row], value_length)
        at = _put_varint(out, at, headers)
        for header in range(first_header, end):
            length = name_ends[header + 1] - name_ends[header]
            at = _put_field(out, at, name_data, name_ends[header], length)
            length = _length(content_ends, content_bits, content_shift, header)
            at = _put_field(out, at, content_data, content_ends[header], length)
        delta += 1
    _close(batches, batch, at, delta, max_timestamp)
    return batch // BATCH_FIELDS + 1


encode_rows = compiled(
    _encode,
    *(NUMBER, NUMBER, INTS, LONGS, INTS, LONGS),
    *(LONGS, BYTES, BYTES, NUMBER),
    *(LONGS, BYTES, BYTES, NUMBER),
    *(LONGS, LONGS, LONGS, BYTES, LONGS, BYTES, BYTES, NUMBER),
    *(NUMBER, BYTES, LONGS),
)
