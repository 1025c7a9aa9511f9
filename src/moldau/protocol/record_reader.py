"""Parsing the records of a batch.

A record is a length, attributes, timestamp and offset relative to the batch header, key, value and headers;
numbers are zigzag varints.

`iter_records` validates everything: fields must be inside their record and records inside the payload, the
number of records must match the header, and the payload may not decompress to more than `max_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from moldau.protocol.batch_header import (
    BATCH_HEADER_SIZE,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
    read_batch_header,
)
from moldau.protocol.compression import decompress
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.schema import Buffer

#: The default limit of a decompressed batch.
MAX_DECOMPRESSED: Final = 128 * 1024 * 1024


class Record(NamedTuple):
    """One record. A header key that is not UTF-8 keeps its bytes as surrogate escapes."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    sequence: int = -1


def batch_payload(batch: Buffer, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED) -> bytes:
    """Return the decompressed records of a batch."""
    if len(batch) < header.size_in_bytes:
        raise CorruptBatch(f"the batch has {header.size_in_bytes} bytes, but only {len(batch)} are available")
    return decompress(header.codec, memoryview(batch)[BATCH_HEADER_SIZE : header.size_in_bytes], max_bytes)


def iter_records(
    batch: Buffer, header: BatchHeader | None = None, *, max_bytes: int = MAX_DECOMPRESSED
) -> Iterator[Record]:
    """Yield the records of the batch at the start of `batch`; `CorruptBatch` where it is damaged."""
    if header is None:
        header = read_batch_header(batch)
    payload = batch_payload(batch, header, max_bytes)
    if not 0 <= header.records_count <= len(payload):
        raise CorruptBatch(f"{header.records_count} records cannot fit into {len(payload)} bytes")
    try:
        yield from _parse(payload, header)
    except IndexError as error:
        raise CorruptBatch("the batch ends inside a record") from error


def iter_first_records(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of the beginning of a decompressed batch; it ends where it is cut off or damaged."""
    try:
        yield from _parse(payload, header)
    except (CorruptBatch, IndexError):
        return


def _parse(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    # Calls and attribute look-ups dominate the cost, so key and value are read inline.
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    base_sequence = header.base_sequence
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_FLAG else None
    size, position = len(payload), 0
    for _ in range(header.records_count):
        length, position = _read_varint(payload, position)
        end = position + length
        if length < 0 or end > size:
            raise CorruptBatch(f"a record of {length} bytes extends past the end of its batch")
        timestamp_delta, position = _read_varint(payload, position + 1)
        offset_delta, position = _read_varint(payload, position)
        key = value = None
        length, position = _read_varint(payload, position)
        if length >= 0:
            key = payload[position : position + length]
            position += length
        length, position = _read_varint(payload, position)
        if length >= 0:
            value = payload[position : position + length]
            position += length
        headers, position = _read_headers(payload, position, end)
        if position != end:
            raise CorruptBatch("a record does not have its announced length")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        sequence = -1 if base_sequence < 0 else (base_sequence + offset_delta) & 0x7FFFFFFF
        yield Record(base_offset + offset_delta, timestamp, key, value, headers, sequence)
    if position != size:
        raise CorruptBatch(f"{size - position} bytes left over after the last record of the batch")


def _read_headers(payload: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = _read_varint(payload, position)
    headers: list[tuple[str, bytes | None]] = []
    if not count:
        return headers, position
    if not 0 <= count <= end - position:
        raise CorruptBatch(f"a record has an invalid header count of {count}")
    for _ in range(count):
        name, position = _read_bytes(payload, position, end)
        if name is None:
            raise CorruptBatch("a record header has no key")
        content, position = _read_bytes(payload, position, end)
        headers.append((name.decode(errors="surrogateescape"), content))
    return headers, position


def _read_bytes(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _read_varint(payload, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > end:
        raise CorruptBatch(f"a field of {length} bytes extends past the end of its record")
    return payload[position:stop], stop


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """Read a zigzag varint of at most ten bytes."""
    value = payload[position]
    if value < 128:
        return (value >> 1) ^ -(value & 1), position + 1
    second = payload[position + 1]
    if second < 128:
        return ((value & 127 | second << 7) >> 1) ^ -(value & 1), position + 2
    value = value & 127 | (second & 127) << 7
    for index in range(2, 10):
        byte = payload[position + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return (value >> 1) ^ -(value & 1), position + index + 1
    raise CorruptBatch("a varint has more than ten bytes")
