"""Record batches made by hand: every field of the header can be set to any value, also an invalid one.

They are independent of the product's codec on purpose.
"""

from __future__ import annotations

import gzip
import struct
import time
import zlib
from collections.abc import Sequence

import cramjam
from fastcrc import crc32

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_HEADER_AFTER_CRC = struct.Struct(">hiqqqhii")


def varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append((number & 0x7F) | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def record(key: bytes | None, value: bytes | None, offset_delta: int = 0) -> bytes:
    def field(data: bytes | None) -> bytes:
        return varint(-1) if data is None else varint(len(data)) + data

    body = b"\0" + varint(0) + varint(offset_delta) + field(key) + field(value) + varint(0)
    return varint(len(body)) + body


def batch(
    records: Sequence[tuple[bytes | None, bytes | None]] = ((b"k", b"v"),),
    *,
    payload: bytes | None = None,
    codec: int = 0,
    attributes: int | None = None,
    magic: int = 2,
    length: int | None = None,
    crc: int | None = None,
    count: int | None = None,
    last_offset_delta: int | None = None,
    base_offset: int = 0,
    timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
) -> bytes:
    """Make a batch of format 2; arguments replace the correct values."""
    if payload is None:
        payload = b"".join(record(key, value, n) for n, (key, value) in enumerate(records))
    now = int(time.time() * 1000) if timestamp is None else timestamp
    after_crc = _HEADER_AFTER_CRC.pack(
        codec if attributes is None else attributes,
        len(records) - 1 if last_offset_delta is None else last_offset_delta,
        now,
        now,
        producer_id,
        producer_epoch,
        sequence,
        len(records) if count is None else count,
    )
    covered = after_crc + _compress(codec, payload)
    checksum = crc32.iscsi(covered) if crc is None else crc
    front = struct.pack(">ibI", -1, magic, checksum)
    size = len(front) + len(covered) if length is None else length
    return struct.pack(">qi", base_offset, size) + front + covered


#: A time with the bit at which the current format marks transactional batches.
_OLD_TIMESTAMP = 0x1_A1F0_4EB6_63


def old_message(magic: int, value: bytes = b"old", timestamp: int = _OLD_TIMESTAMP) -> bytes:
    """Make a message set of one message in format 0 or 1."""
    stamp = struct.pack(">q", timestamp) if magic == 1 else b""
    covered = (
        struct.pack(">bb", magic, 0) + stamp + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    )
    message = struct.pack(">I", zlib.crc32(covered)) + covered
    return struct.pack(">qi", 0, len(message)) + message


def _compress(codec: int, payload: bytes) -> bytes:
    if codec == GZIP:
        # The same bytes at any time.
        return gzip.compress(payload, 6, mtime=0)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(payload))
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
        compressor.compress(payload)
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(payload, 3))
    return payload
