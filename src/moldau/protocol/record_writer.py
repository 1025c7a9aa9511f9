"""Building a record batch, and recompressing one with another codec."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from moldau.protocol.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_FLAG,
    CREATE_TIME,
    DELETE_HORIZON_FLAG,
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    batch_crc,
    patch_batch,
    read_batch_header,
)
from moldau.protocol.compression import compress
from moldau.protocol.errors import EncodeError
from moldau.protocol.primitives import uvarint
from moldau.protocol.record_reader import MAX_DECOMPRESSED, Record, batch_payload, iter_records
from moldau.protocol.schema import Buffer

_CRC = struct.Struct(">I")


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    codec: int = 0,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """Build a batch of records, whose offsets are absolute and at least `base_offset`.

    `last_offset` and `max_timestamp` are those of the records unless given: compaction keeps the old ones,
    and may leave a batch without records; with `LogAppendTime`, the max timestamp applies to all records.
    `delete_horizon_ms` takes the place of the base timestamp.
    """
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    base_timestamp = records[0].timestamp if records else max_timestamp
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    payload = b"".join([_encode_record(record, base_offset, base_timestamp) for record in records])
    if codec and records:
        payload = compress(codec, payload, level)
    attributes = (codec if records else 0) & CODEC_MASK
    attributes |= TIMESTAMP_TYPE_FLAG if timestamp_type == LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_FLAG if is_transactional else 0
    attributes |= CONTROL_FLAG if is_control else 0
    attributes |= DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0
    size = BATCH_HEADER_SIZE + len(payload)
    header = BatchHeader(
        base_offset,
        size - LOG_OVERHEAD,
        partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return _assemble(header, payload)


def _assemble(header: BatchHeader, payload: bytes) -> bytearray:
    """Join header and payload in one buffer, with the checksum."""
    batch = bytearray(BATCH_HEADER_SIZE)
    try:
        HEADER.pack_into(batch, 0, *header)
    except struct.error as error:
        raise EncodeError(f"invalid batch header: {error} in {header}") from error
    batch += payload
    _CRC.pack_into(batch, 17, batch_crc(batch, 0, len(batch)))
    return batch


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    key, value = record.key, record.value
    parts = [
        b"\0",
        _varint(record.timestamp - base_timestamp),
        _varint(record.offset - base_offset),
        _NULL if key is None else _varint(len(key)) + key,
        _NULL if value is None else _varint(len(value)) + value,
        _varint(len(record.headers)),
    ]
    for name, content in record.headers:
        encoded = name.encode(errors="surrogateescape")
        parts += (_varint(len(encoded)), encoded)
        parts.append(_NULL if content is None else _varint(len(content)) + content)
    body = b"".join(parts)
    return _varint(len(body)) + body


_NULL = b"\x01"
_SHORT = tuple(bytes((value,)) for value in range(128))


def _varint(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    return _SHORT[zigzag] if zigzag < 128 else uvarint(zigzag)


def recompress(
    batch: Buffer,
    header: BatchHeader,
    codec: int,
    level: int | None = None,
    *,
    max_bytes: int = MAX_DECOMPRESSED,
) -> bytearray:
    """Recompress a batch with another codec; records are not parsed and do not change."""
    payload = compress(codec, batch_payload(batch, header, max_bytes), level)
    attributes = header.attributes & ~CODEC_MASK | codec
    length = BATCH_HEADER_SIZE - LOG_OVERHEAD + len(payload)
    return _assemble(header._replace(attributes=attributes, batch_length=length), payload)


def split_batch(batch: Buffer) -> list[bytearray]:
    """Split a producer's batch into two of half as many records; one with a single record is unchanged."""
    header = read_batch_header(batch)
    records = list(iter_records(batch, header))
    middle = len(records) // 2
    return [_part(half, header) for half in (records[:middle], records[middle:]) if half]


def _part(records: list[Record], header: BatchHeader) -> bytearray:
    part = build_batch(
        records,
        base_offset=records[0].offset,
        codec=header.codec,
        timestamp_type=header.timestamp_type,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=records[0].sequence,
        is_transactional=header.is_transactional,
    )
    patch_batch(part, 0, 0, -1)
    return part
