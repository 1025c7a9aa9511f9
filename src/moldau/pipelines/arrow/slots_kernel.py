"""The compiled loop that says where rows go: to the partition they name, else to that of their key as Java's
producer puts it, else to one partition for about a batch, then to the next.

A slot is a partition of a topic. Only 64-bit signed numbers are used: Numba makes floats of sums of signed
and unsigned ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, INTS, LONGS, NUMBER, compiled, inlined

#: What is kept of a topic for rows without a key: where they go now, and how many bytes went there.
STICKY_FIELDS: Final = 2
#: About what a row without a key takes in a batch beside its value.
_ROW_BYTES: Final = 12

#: Makes a 64-bit signed number, which Numba does not always guess.
_int64: Any = np.int64
_M, _MASK, _SEED = 0x5BD1_E995, 0xFFFF_FFFF, 0x9747_B28C


@inlined
def is_set(bits: Any, index: int) -> Any:
    """Whether a bit of an Arrow bitmap is set."""
    return (_int64(bits[index >> 3]) >> (index & 7)) & 1 != 0


@inlined
def _murmur2(data: Any, begin: int, length: int) -> int:
    """The hash of Java's producer, as an unsigned number of 32 bits."""
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
    """-1, or the first row whose partition its topic does not have; a shift of -1 says: no such column."""
    for row in range(rows):
        topic = _int64(topics[row])
        count = _int64(partition_counts[topic])
        if given_shift >= 0 and is_set(given_bits, row + given_shift):
            partition = _int64(given[row])
            if partition < 0 or partition >= count:
                return row
        elif key_shift >= 0 and is_set(key_bits, row + key_shift):
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


choose_slots = compiled(
    _choose_slots,
    *(NUMBER, INTS, INTS, INTS),
    *(LONGS, BYTES, BYTES, NUMBER, LONGS),
    *(INTS, BYTES, NUMBER),
    *(LONGS, NUMBER, INTS, LONGS),
)
