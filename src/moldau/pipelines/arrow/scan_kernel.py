"""The compiled loop that reads the headers of record batches into a table.

A batch that readers do not see, because it is a control batch or lies outside of the wanted offsets, has no
records and an empty payload in the table. Nothing is trusted: a length that makes no sense, another format or
more records than there is room for ends the scan; the next row of the table then has the base offset of that
batch, or -1 if not even that is there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from moldau.pipelines.arrow.kernels import BYTES, LONGS, NUMBER, compiled, inlined
from moldau.protocol.batch_header import BATCH_HEADER_SIZE, CODEC_MASK, CONTROL_FLAG, LOG_OVERHEAD, MAGIC

#: What is known of a batch: a row of these numbers.
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

#: What the scan tells beside the table: how many batches were good.
RESULTS: Final = 1
BATCHES: Final = 0

#: Why a batch is damaged.
REASONS: Final = (
    "",
    "the length of a batch makes no sense",
    "a batch of another format than magic 2",
    "more records are announced than there is room for",
)
_OK, _LENGTH, _FORMAT, _COUNT = range(4)

#: A record has at least a length, attributes, timestamp, offset, key length, value length, header count.
SMALLEST_RECORD: Final = 7

#: Makes a 64-bit signed number, which Numba does not always guess.
_int64: Any = np.int64
_int8: Any = np.int8


@inlined
def _number(data: Any, position: int, size: int) -> int:
    """A big-endian number of `size` bytes."""
    value: int = _int64(_int8(data[position]))
    for i in range(1, size):
        value = value << 8 | _int64(data[position + i])
    return value


def _scan(data: Any, size: int, start: int, end: int, table: Any, results: Any) -> int:
    """Fill the table with the batches that fill `data`; those without records in the range are not seen."""
    position = count = 0
    while position < size:
        row = count * BATCH_FIELDS
        table[row + BASE_OFFSET] = -1
        if size - position < BATCH_HEADER_SIZE:
            return _LENGTH
        base_offset = _number(data, position, 8)
        table[row + BASE_OFFSET] = base_offset
        batch_size = _number(data, position + 8, 4) + LOG_OVERHEAD
        if data[position + 16] != MAGIC:
            return _FORMAT
        if batch_size < BATCH_HEADER_SIZE or batch_size > size - position:
            return _LENGTH
        attributes = _number(data, position + 21, 2)
        last_offset = base_offset + _number(data, position + 23, 4)
        records = _number(data, position + 57, 4)
        seen = attributes & CONTROL_FLAG == 0 and last_offset >= start and base_offset < end
        if attributes & CODEC_MASK == 0 and (
            records < 0 or records * SMALLEST_RECORD > batch_size - BATCH_HEADER_SIZE
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
        table[row + PAYLOAD_END] = position if seen else table[row + PAYLOAD_BEGIN]
        table[row + COUNT] = records if seen else 0
        count += 1
        results[BATCHES] = count
    return _OK


scan_batches = compiled(_scan, BYTES, NUMBER, NUMBER, NUMBER, LONGS, LONGS)
