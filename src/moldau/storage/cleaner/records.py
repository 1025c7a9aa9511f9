"""Parsing batches as far as compaction needs it, and rewriting them with fewer records.

This is the only code in the node that parses every record of large files, so it reads only what compaction
needs: where a record begins and ends, its offset, its key, whether it has a value. A retained record is
copied unchanged, since base offset and base timestamp of its batch do not change. Only a new delete horizon
changes the timestamp deltas, because it takes the place of the base timestamp (KIP-534).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from moldau.protocol.batch_header import CODEC_MASK, DELETE_HORIZON_FLAG, HEADER
from moldau.protocol.compression import compress
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    CREATE_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    batch_crc,
    batch_payload,
)
from moldau.storage.disk.disk import Buffer

_CRC = Struct(">I")
_CRC_AT = 17

#: A record in the unpacked payload of its batch: start, end, offset delta, key, has a value. A plain tuple
#: because one is created for every record.
Span = tuple[int, int, int, bytes | None, bool]
#: The retained part of a batch: its header (its checksum may be the old one) and its bytes.
Kept = tuple[BatchHeader, Buffer]


def scan(payload: bytes, count: int) -> list[Span]:
    """Scan the records of an unpacked payload; `CorruptBatch` unless there are exactly `count`.

    Varints of one and two bytes, nearly all of them, are read inline, because calls dominate the cost.
    """
    spans: list[Span] = []
    append = spans.append
    size = len(payload)
    position = 0
    try:
        for _ in range(count):
            start = position
            length = payload[position]
            position += 1
            if length > 127:
                second = payload[position]
                position += 1
                if second < 128:
                    length = length & 127 | second << 7
                else:
                    length, position = read_varint(payload, start)
            end = position + (length >> 1)
            position += 1
            while payload[position] > 127:
                position += 1
            delta = payload[position + 1]
            position += 2
            if delta > 127:
                second = payload[position]
                position += 1
                if second < 128:
                    delta = delta & 127 | second << 7
                else:
                    delta, position = read_varint(payload, position - 2)
            key_size = payload[position]
            position += 1
            if key_size > 127:
                key_size, position = read_varint(payload, position - 1)
            if key_size & 1:
                key = None
            else:
                key_end = position + (key_size >> 1)
                key = payload[position:key_end]
                position = key_end
            if position >= end or end > size or length & 1 or delta & 1:
                raise CorruptBatch("a record exceeds its declared length")
            append((start, end, delta >> 1, key, not payload[position] & 1))
            position = end
    except IndexError:
        raise CorruptBatch("the last record is incomplete") from None
    if position != size:
        raise CorruptBatch("bytes follow the last record")
    return spans


def read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """Read a varint in zigzag form; return it and its end."""
    value = shift = 0
    while True:
        byte = payload[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise CorruptBatch("a varint is not terminated")


def write_varint(value: int) -> bytes:
    """Encode a number in zigzag form as a varint."""
    encoded = bytearray()
    value = (value << 1) ^ (value >> 63)
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def control_type(header: BatchHeader, data: memoryview) -> int | None:
    """The type of a control batch's record; None if compaction has emptied it."""
    if header.records_count == 0:
        return None
    key = scan(batch_payload(data, header), header.records_count)[0][3]
    if key is None or len(key) < 4:
        raise CorruptBatch("a control record has no type")
    return int.from_bytes(key[2:4], "big", signed=True)


def rebuild(
    header: BatchHeader,
    payload: bytes,
    retained: Sequence[Span],
    delete_horizon_ms: int | None,
) -> Kept:
    """Return the batch with only the retained records, and with a new delete horizon if given."""
    deltas = [read_timestamp_delta(payload, start) for start, *_ in retained]
    max_timestamp = header.max_timestamp
    if header.timestamp_type == CREATE_TIME:
        max_timestamp = header.base_timestamp + max(deltas)
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if delete_horizon_ms is None:
        parts = [payload[start:end] for start, end, *_ in retained]
    else:
        shift = base_timestamp - delete_horizon_ms
        parts = [_shifted(payload, span, shift) for span in retained]
        base_timestamp = delete_horizon_ms
        attributes |= DELETE_HORIZON_FLAG
    records = b"".join(parts)
    if header.codec:
        records = compress(header.codec, records)
    return _write(header, attributes, base_timestamp, max_timestamp, len(parts), records)


def empty_batch(header: BatchHeader) -> Kept:
    """Return only the header, which keeps the producer's last sequence or the last cleaned offset."""
    attributes = header.attributes & ~CODEC_MASK & ~DELETE_HORIZON_FLAG
    return _write(header, attributes, NO_TIMESTAMP, header.max_timestamp, 0, b"")


def read_timestamp_delta(payload: bytes, start: int) -> int:
    _, position = read_varint(payload, start)
    value, _ = read_varint(payload, position + 1)
    return (value >> 1) ^ -(value & 1)


def _shifted(payload: bytes, span: Span, shift: int) -> bytes:
    """Return a record with its timestamp relative to another base."""
    start, end = span[:2]
    _, attributes_at = read_varint(payload, start)
    value, rest_at = read_varint(payload, attributes_at + 1)
    delta = write_varint(((value >> 1) ^ -(value & 1)) + shift)
    length = write_varint(1 + len(delta) + end - rest_at)
    return b"".join((length, payload[attributes_at : attributes_at + 1], delta, payload[rest_at:end]))


def _write(
    header: BatchHeader, attributes: int, base_timestamp: int, max_timestamp: int, count: int, records: bytes
) -> Kept:
    changed = header._replace(
        batch_length=BATCH_HEADER_SIZE - LOG_OVERHEAD + len(records),
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        records_count=count,
    )
    batch = bytearray(HEADER.pack(*changed))
    batch += records
    _CRC.pack_into(batch, _CRC_AT, batch_crc(batch, 0, len(batch)))
    return changed, batch
