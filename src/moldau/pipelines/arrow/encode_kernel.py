"""Compiled loops that encode the rows of Arrow columns as record batches (magic 2).

A *slot* is a partition of a topic, numbered across all topics of a call. `choose_slots` assigns a slot to
every row: the partition the row names, else the partition of its key (the hash of Java's producer), else the
topic's current partition for rows without a key, which changes after about one batch (KIP-480, KIP-794).
`encode_rows` sorts the rows by slot, preserving their order, and writes the records of each slot one after
the other, leaving room for a header before every batch; a table tells where the batches are.

Invariants:

- All arithmetic is on signed 64-bit integers: Numba turns sums of signed and unsigned integers into floats.
- Output stays within the caller's buffers: at most `ROW_OVERHEAD` bytes per row and `HEADER_OVERHEAD` per
  record header in addition to the keys and values themselves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined

#: Length 5, attributes 1, timestamp 10, offset 5, key length 5, value length 5, number of headers 5.
ROW_OVERHEAD: Final = 36
HEADER_OVERHEAD: Final = 10
#: The columns of the table of batches.
BATCH_FIELDS: Final = 6
SLOT, BEGIN, END, COUNT, BASE_TIMESTAMP, MAX_TIMESTAMP = range(BATCH_FIELDS)

#: The state of a topic for rows without a key: the current partition, and the bytes written to it.
STICKY_FIELDS: Final = 2
#: About what a row without a key takes in a batch in addition to its value.
_ROW_BYTES: Final = 12

#: Forces a signed 64-bit integer where Numba would infer another type.
_int64: Any = np.int64
_BATCH_HEADER = 61
_M, _MASK, _SEED = 0x5BD1_E995, 0xFFFF_FFFF, 0x9747_B28C


@inlined
def _is_set(bits: Any, index: int) -> Any:
    """Return whether a bit of an Arrow validity bitmap is set."""
    return (_int64(bits[index >> 3]) >> (index & 7)) & 1 != 0


@inlined
def _murmur2(data: Any, begin: int, length: int) -> int:
    """Return the hash of Java's default partitioner as an unsigned 32-bit integer."""
    h = _SEED ^ length
    position, whole = begin, begin + (length & ~3)
    while position < whole:
        k = (
            _int64(data[position])
            | _int64(data[position + 1]) << 8
            | _int64(data[position + 2]) << 16
            | _int64(data[position + 3]) << 24
        )
        k = (k * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
        position += 4
    rest = length & 3
    if rest:
        if rest == 3:
            h ^= _int64(data[position + 2]) << 16
        if rest >= 2:
            h ^= _int64(data[position + 1]) << 8
        h = ((h ^ _int64(data[position])) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def _choose_slots(
    rows: int,
    topics: Any,
    partition_counts: Any,
    first_slots: Any,
    key_ends: Any,
    key_data: Any,
    key_bits: Any,
    key_shift: int,
    value_ends: Any,
    given: Any,
    given_bits: Any,
    given_shift: int,
    sticky: Any,
    sticky_bytes: int,
    slots: Any,
    slot_rows: Any,
) -> int:
    """Assign slots; return -1, or the first row whose partition does not exist. A shift of -1 means that the
    column is absent."""
    for row in range(rows):
        topic = _int64(topics[row])
        count = _int64(partition_counts[topic])
        if given_shift >= 0 and _is_set(given_bits, row + given_shift):
            partition = _int64(given[row])
            if partition < 0 or partition >= count:
                return row
        elif key_shift >= 0 and _is_set(key_bits, row + key_shift):
            begin = key_ends[row]
            partition = (_murmur2(key_data, begin, key_ends[row + 1] - begin) & 0x7FFF_FFFF) % count
        else:
            at = topic * STICKY_FIELDS
            if sticky[at + 1] >= sticky_bytes:
                sticky[at] = (sticky[at] + 1) % count
                sticky[at + 1] = 0
            sticky[at + 1] += value_ends[row + 1] - value_ends[row] + _ROW_BYTES
            partition = sticky[at]
        slot = first_slots[topic] + partition
        slots[row] = slot
        slot_rows[slot] += 1
    return -1


@inlined
def _varint_size(value: int) -> int:
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag >= 0 and zigzag < 128:
        return 1
    size = 1
    # The top bit may be set: emulate a logical shift, which signed integers do not have.
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
    """Write a length and the bytes of a field; length -1 for null."""
    at = _put_varint(out, at, length)
    for i in range(length):
        out[at + i] = data[begin + i]
    return at + max(length, 0)


@inlined
def _length(ends: Any, bits: Any, shift: int, index: int) -> Any:
    """Return the length of a field, -1 for null. A shift of -1 means that the column is absent."""
    if shift < 0 or not _is_set(bits, index + shift):
        return -1
    return _int64(ends[index + 1] - ends[index])


@inlined
def _field_size(length: int) -> int:
    return _varint_size(length) + max(length, 0)


@inlined
def _sort_rows(rows: int, slot_count: int, slots: Any, slot_rows: Any, order: Any) -> None:
    """Sort rows by slot, preserving their order; `slot_rows` then holds the end of the rows of each slot."""
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
    """Write all batches and describe them in `batches`; return their number."""
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


choose_slots = compiled(
    _choose_slots,
    *(NUMBER, INTS, INTS, INTS),
    *(LONGS, BYTES, BYTES, NUMBER, LONGS),
    *(INTS, BYTES, NUMBER),
    *(LONGS, NUMBER, INTS, LONGS),
)
encode_rows = compiled(
    _encode,
    *(NUMBER, NUMBER, INTS, LONGS, INTS, LONGS),
    *(LONGS, BYTES, BYTES, NUMBER),
    *(LONGS, BYTES, BYTES, NUMBER),
    *(LONGS, LONGS, LONGS, BYTES, LONGS, BYTES, BYTES, NUMBER),
    *(NUMBER, BYTES, LONGS),
)
