"""The five codecs of record batches, every decompression bounded.

gzip is from zlib; snappy, lz4 and zstd are from cramjam. Java reads only lz4 frames of independent blocks.
Snappy data is either raw or in the frames of the xerial library (a magic header, then raw blocks with their
lengths); both are read, and frames are written, which every client reads.

The bound holds whatever size the data claims: zlib stops at the bound, a raw snappy block begins with its
size and is refused before it is decompressed, lz4 and zstd decompress into a buffer of at most that size.

cramjam is imported with the first use: it weighs more than any other import of a node.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

from moldau.protocol.errors import CorruptBatch, DecompressionBomb
from moldau.protocol.schema import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

#: The names in `compression.type`, in order of their codes.
CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

#: Kafka's default level of each codec, and the levels its topic configs allow.
DEFAULT_LEVELS: Final = {GZIP: -1, LZ4: 9, ZSTD: 3}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024
_GZIP_WINDOW = 31
_GZIP_MEMBERS = 16
#: From this level on lz4 uses its high-compression mode; lower levels make no difference.
_LZ4_FASTEST = 1
_FIRST_BUFFER = 16 * 1024


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data`; None or Kafka's default level selects the codec's default."""
    if level is not None and level == DEFAULT_LEVELS.get(codec):
        level = None
    try:
        return _COMPRESSORS[codec](data, level)
    except KeyError:
        raise CorruptBatch(f"unknown compression codec {codec}") from None


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Decompress `data`; `DecompressionBomb` if longer than `max_bytes`, `CorruptBatch` if damaged."""
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise CorruptBatch(f"unknown compression codec {codec}")
    try:
        return decompressor(data, max_bytes)
    except _damage_errors(codec) as error:
        raise CorruptBatch(f"{CODEC_NAMES[codec]} data cannot be decompressed: {error}") from error


def _damage_errors(codec: int) -> type[Exception]:
    if codec in (NONE, GZIP):
        return zlib.error
    from cramjam import DecompressionError

    return DecompressionError


def _bomb(max_bytes: int) -> DecompressionBomb:
    return DecompressionBomb(f"decompressed data is longer than {max_bytes} bytes")


def _keep(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _kept(data: Buffer, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _bomb(max_bytes)
    return bytes(data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush()


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = max_bytes
    rest: Buffer = data
    for _ in range(_GZIP_MEMBERS):
        member = zlib.decompressobj(_GZIP_WINDOW)
        # zlib takes a limit of 0 for none, so the limit is one byte more than allowed.
        part = member.decompress(rest, left + 1)
        left -= len(part)
        if left < 0:
            raise _bomb(max_bytes)
        if not member.eof:
            raise CorruptBatch("gzip data ends too early")
        parts.append(part)
        rest = member.unused_data
        if not rest:
            return b"".join(parts)
    raise CorruptBatch(f"gzip data has more than {_GZIP_MEMBERS} members")


def _snappy(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, max_bytes, max_bytes)
    parts: list[bytes] = []
    left = max_bytes
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # streams may follow each other
            continue
        start = position + 4
        position = start + int.from_bytes(view[position:start], "big")
        if start > len(view) or position > len(view):
            raise CorruptBatch("snappy data ends too early")
        parts.append(_unsnappy_block(view[start:position], left, max_bytes))
        left -= len(parts[-1])
    return b"".join(parts)


def _unsnappy_block(block: memoryview, left: int, max_bytes: int) -> bytes:
    from cramjam import snappy

    if snappy.decompress_raw_len(block) > left:
        raise _bomb(max_bytes)
    return bytes(snappy.decompress_raw(block))


def _lz4(data: Buffer, level: int | None) -> bytes:
    from cramjam import lz4

    compressor = lz4.Compressor(
        level=_LZ4_FASTEST if level is None else level, content_checksum=False, block_linked=False
    )
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def _zstd(data: Buffer, level: int | None) -> bytes:
    from cramjam import zstd

    return bytes(zstd.compress(data, level=DEFAULT_LEVELS[ZSTD] if level is None else level))


def _unlz4(data: Buffer, max_bytes: int) -> bytes:
    from cramjam import lz4

    return _decompress_into(lz4.decompress_into, data, max_bytes)


def _unzstd(data: Buffer, max_bytes: int) -> bytes:
    from cramjam import zstd

    return _decompress_into(zstd.decompress_into, data, max_bytes)


def _decompress_into(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, max_bytes: int
) -> bytes:
    """Decompress into a buffer of a likely size, and retry with larger ones if it is too small."""
    from cramjam import DecompressionError

    size = max(_FIRST_BUFFER, 4 * len(data))
    while True:
        size = min(size, max_bytes)
        buffer = bytearray(size)
        try:
            length = decompress_into(data, buffer)
        except DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size == max_bytes:
                raise _bomb(max_bytes) from error
            size *= 8
        else:
            del buffer[length:]
            return bytes(buffer)


_COMPRESSORS: dict[int, Callable[[Any, int | None], bytes]] = {
    NONE: _keep,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
_DECOMPRESSORS: dict[int, Callable[[Any, int], bytes]] = {
    NONE: _kept,
    GZIP: _gunzip,
    SNAPPY: _unsnappy,
    LZ4: _unlz4,
    ZSTD: _unzstd,
}
