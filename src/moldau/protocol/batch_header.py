"""The 61-byte header of a record batch, and what a broker does with a batch without parsing its records.

Layout (magic 2): base offset 0-7, length 8-11 (of what follows it), leader epoch 12-15, magic 16, CRC-32C
17-20 (of everything after it), attributes 21-22, last offset delta 23-26, base timestamp 27-34, max timestamp
35-42, producer id 43-50, producer epoch 51-52, base sequence 53-56, count 57-60, records from 61 on. The
checksum does not cover base offset and leader epoch, so a broker writes them in place. The magic byte has the
same position in the two older formats, which are recognised and refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from fastcrc import crc32

from moldau.protocol.errors import CorruptBatch
from moldau.protocol.schema import Buffer

BATCH_HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
NO_TIMESTAMP: Final = -1

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
CHECKED_FROM: Final = 21

_LENGTH_AND_MAGIC = struct.Struct(">i4xb")
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_PRODUCER = struct.Struct(">qhi")
_SEQUENCES = 1 << 31


class UnsupportedMagic(CorruptBatch):
    """A batch of another format: magic 0 and 1 were used before Kafka 0.11."""

    def __init__(self, magic: int) -> None:
        super().__init__(f"record batch with magic {magic}; only {MAGIC} is supported")
        self.magic = magic


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_in_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0 if the producer set the timestamps, 1 if the broker did on append."""
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_FLAG else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the delete horizon of tombstones and markers (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_FLAG)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, which wraps around after 2147483647; -1 without a producer."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES


_unpack_header = HEADER.unpack_from
_make_header = BatchHeader._make


def read_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; `CorruptBatch` if it is incomplete or its length is invalid."""
    if len(buffer) - position < BATCH_HEADER_SIZE:
        _refuse_short(buffer, position)
    header = _make_header(_unpack_header(buffer, position))
    if header.magic != MAGIC:
        raise UnsupportedMagic(header.magic)
    if header.batch_length < BATCH_HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(f"invalid batch length {header.batch_length}")
    return header


def _refuse_short(buffer: Buffer, position: int) -> None:
    """The error for fewer bytes than a header; a batch of an old format is still recognised."""
    left = len(buffer) - position
    if position >= 0 and left > 16:
        _, magic = _LENGTH_AND_MAGIC.unpack_from(buffer, position + 8)
        if magic in (0, 1):
            raise UnsupportedMagic(magic)
    raise CorruptBatch(f"a batch header has {BATCH_HEADER_SIZE} bytes, but only {left} are available")


def iter_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each complete batch; a truncated last batch is ignored."""
    position, size = 0, len(buffer)
    while size - position >= BATCH_HEADER_SIZE:
        header = read_batch_header(buffer, position)
        end = position + header.batch_length + LOG_OVERHEAD
        if end > size:
            return
        yield position, header
        position = end


def batch_crc(buffer: Buffer, position: int, size_in_bytes: int) -> int:
    """Compute the checksum of a batch."""
    return crc32.iscsi(memoryview(buffer)[position + CHECKED_FROM : position + size_in_bytes])


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    return batch_crc(buffer, position, header.batch_length + LOG_OVERHEAD) == header.crc


def patch_batch(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch in place; the checksum covers neither."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + 12, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    timestamp_type: int,
    max_timestamp: int,
) -> None:
    """Write timestamp type and max timestamp in place, and update the checksum."""
    attributes = header.attributes & ~TIMESTAMP_TYPE_FLAG
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_FLAG
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return
    _ATTRIBUTES.pack_into(buffer, position + 21, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + 35, max_timestamp)
    _CRC.pack_into(buffer, position + 17, batch_crc(buffer, position, header.size_in_bytes))


def set_producer(
    buffer: bytearray | memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool,
) -> None:
    """Write the producer's fields of a whole batch in place, and update the checksum."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, 21)
    attributes = attributes | TRANSACTIONAL_FLAG if transactional else attributes & ~TRANSACTIONAL_FLAG
    _ATTRIBUTES.pack_into(buffer, 21, attributes)
    _PRODUCER.pack_into(buffer, 43, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(buffer, 17, batch_crc(buffer, 0, len(buffer)))
