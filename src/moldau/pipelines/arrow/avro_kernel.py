"""Compiled loops that decode and encode flat Avro records, from and to columns of numbers and of positions.

A record is a sequence of fields; a field is a line of the table `fields`: its kind, the number of its null
branch (`NOT_NULL` if it has none), and the size of a fixed type. A record inside a record is followed by its
fields, whose number is its size. `decode` writes for every row and field one
number, and one length: -1 for null, the number of bytes of texts and bytes (whose number is their position),
and 0 otherwise. `gather` copies such bytes into the buffers of an Arrow column. `encode` is the reverse of
`decode`, for fields whose first branch is null.

Invariants:

- Input is not trusted: every read is checked against the end of its record. A row whose record is truncated
  or malformed has the status `MALFORMED`, one that is followed by more bytes `TRAILING`; other rows are not
  affected.
- Output stays within the caller's buffers: one number and one length per row and field; an encoded field has
  at most `MAX_FIELD_BYTES` bytes, in addition to those of a text.
- All arithmetic is on signed 64-bit integers: Numba turns sums of signed and unsigned integers into floats.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined

#: Kinds of fields.
BOOLEAN, VARINT, FLOAT, DOUBLE, TEXT, FIXED, RECORD = range(7)
NOT_NULL: Final = -1
#: The columns of the table of fields.
FIELD_COLUMNS: Final = 3
#: The maximum size of a field: a branch and a varint.
MAX_FIELD_BYTES: Final = 11
#: The status of a row.
GOOD, MALFORMED, TRAILING = range(3)

_LOGICAL: Final = 0x7FFF_FFFF_FFFF_FFFF
#: The bits that are left after a logical shift by seven.
_LOGICAL_7: Final = 0x01FF_FFFF_FFFF_FFFF
_int64: Any = np.int64


@inlined
def _varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it (-1 if it does not end before `end`)."""
    value = 0
    shift = 0
    while shift < 70:
        if position >= end:
            return 0, -1
        byte = _int64(data[position])
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return ((value >> 1) & _LOGICAL) ^ -(value & 1), position
        shift += 7
    return 0, -1


@inlined
def _little_endian(data: Any, position: int, size: int) -> int:
    value = 0
    for i in range(size):
        value |= _int64(data[position + i]) << (8 * i)
    return value


@inlined
def _field(data: Any, position: int, end: int, kind: int, size: int) -> tuple[int, int, int]:
    """Return the number and the length of a value, and the position after it (-1 if it is malformed)."""
    if kind == VARINT:
        number, position = _varint(data, position, end)
        return number, 0, position
    if kind == TEXT:
        length, position = _varint(data, position, end)
        if position < 0 or length < 0 or length > end - position:
            return 0, 0, -1
        return position, length, position + length
    width = 1 if kind == BOOLEAN else 4 if kind == FLOAT else 8 if kind == DOUBLE else size
    if width > end - position:
        return 0, 0, -1
    if kind == FIXED:
        return position, size, position + size
    return _little_endian(data, position, width), 0, position + width


def _decode(
    data: Any,
    starts: Any,
    ends: Any,
    rows: int,
    fields: Any,
    count: int,
    numbers: Any,
    lengths: Any,
    status: Any,
) -> int:
    """Decode all rows; the values of a field are `rows` numbers in a row. Return how many rows are good."""
    good = 0
    for row in range(rows):
        position, end = starts[row], ends[row]
        absent = 0
        for index in range(count):
            at = index * rows + row
            kind, null_branch = fields[index * FIELD_COLUMNS], fields[index * FIELD_COLUMNS + 1]
            size = fields[index * FIELD_COLUMNS + 2]
            numbers[at] = 0
            lengths[at] = -1
            if absent > 0:
                absent -= 1
                continue
            if position < 0:
                continue
            if null_branch != NOT_NULL:
                branch, position = _varint(data, position, end)
                if branch < 0 or branch > 1:
                    position = -1
                if position >= 0 and branch == null_branch and kind == RECORD:
                    absent = size
                if position < 0 or branch == null_branch:
                    continue
            if kind == RECORD:
                lengths[at] = 0
                continue
            number, length, position = _field(data, position, end, kind, size)
            if position >= 0:
                numbers[at] = number
                lengths[at] = length
        if position == end:
            status[row] = GOOD
            good += 1
        else:
            status[row] = MALFORMED if position < 0 else TRAILING
    return good


def _gather(data: Any, positions: Any, lengths: Any, rows: int, offsets: Any, out: Any) -> int:
    """Copy the bytes of a column; null has no bytes. Return the size."""
    at = 0
    offsets[0] = 0
    for row in range(rows):
        position = positions[row]
        for i in range(max(lengths[row], 0)):
            out[at] = data[position + i]
            at += 1
        offsets[row + 1] = at
    return at


@inlined
def _write_varint(out: Any, at: int, number: int) -> int:
    """Write a zigzag varint and return the position after it."""
    rest = (number << 1) ^ (number >> 63)
    while rest > 127 or rest < 0:
        out[at] = (rest & 127) | 128
        at += 1
        rest = (rest >> 7) & _LOGICAL_7
    out[at] = rest
    return at + 1


@inlined
def _write_field(out: Any, at: int, kind: int, number: int, length: int, text: Any) -> int:
    if kind == VARINT:
        return _write_varint(out, at, number)
    if kind == TEXT:
        at = _write_varint(out, at, length)
        for i in range(length):
            out[at + i] = text[number + i]
        return at + length
    width = 1 if kind == BOOLEAN else 8
    for i in range(width):
        out[at + i] = (number >> (8 * i)) & 255
    return at + width


def _encode(
    prefix: Any,
    prefix_size: int,
    fields: Any,
    count: int,
    numbers: Any,
    lengths: Any,
    text: Any,
    valid: Any,
    rows: int,
    offsets: Any,
    out: Any,
) -> int:
    """Encode the valid rows, each with the prefix in front. Return the size."""
    at = 0
    offsets[0] = 0
    for row in range(rows):
        if valid[row] != 0:
            for i in range(prefix_size):
                out[at + i] = prefix[i]
            at += prefix_size
            for index in range(count):
                length = lengths[index * rows + row]
                at = _write_varint(out, at, 0 if length < 0 else 1)
                if length >= 0:
                    kind = fields[index * FIELD_COLUMNS]
                    at = _write_field(out, at, kind, numbers[index * rows + row], length, text)
        offsets[row + 1] = at
    return at


decode = compiled(_decode, BYTES, LONGS, LONGS, NUMBER, LONGS, NUMBER, LONGS, LONGS, BYTES)
gather = compiled(_gather, BYTES, LONGS, LONGS, NUMBER, INTS, BYTES)
encode = compiled(_encode, BYTES, NUMBER, LONGS, NUMBER, LONGS, LONGS, BYTES, BYTES, NUMBER, INTS, BYTES)
