"""Compression codecs: compatibility with other implementations, and bounded decompression."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import cramjam
import pytest
from aiokafka import codec as aiokafka_codecs

from moldau.protocol.compression import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
from moldau.protocol.errors import CorruptBatch, DecompressionBomb

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
BOUND = 10_000_000
PAYLOADS = [
    b"",
    b"x",
    b"hello " * 10,
    random.Random(1).randbytes(100_000),
    b"abcdefghij" * 100_000,
    bytes(2_000_000),
]


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES)
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: str(len(p)))
def test_compressed_payload_is_decompressed_unchanged(codec: int, payload: bytes) -> None:
    for data in (payload, bytearray(payload), memoryview(payload)):
        compressed = compress(codec, data)
        assert decompress(codec, compressed, BOUND) == payload
        assert decompress(codec, memoryview(b"-" + compressed)[1:], BOUND) == payload
        assert decompress(codec, compressed, max(1, len(payload))) == payload, "exactly at the bound"


@pytest.mark.parametrize(
    ("codec", "levels"), [(GZIP, [-1, 1, 9]), (LZ4, [1, 9, 12, 17]), (ZSTD, [-131072, -5, 1, 3, 19, 22])]
)
def test_compression_levels_are_applied(codec: int, levels: list[int]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, PAYLOADS[4], level), BOUND) == PAYLOADS[4]


@pytest.mark.parametrize("payload", PAYLOADS[1:], ids=lambda p: str(len(p)))
def test_codecs_are_compatible_with_aiokafka(payload: bytes) -> None:
    pairs = {
        GZIP: (aiokafka_codecs.gzip_encode, aiokafka_codecs.gzip_decode),
        SNAPPY: (aiokafka_codecs.snappy_encode, aiokafka_codecs.snappy_decode),
        LZ4: (aiokafka_codecs.lz4_encode, aiokafka_codecs.lz4_decode),
        ZSTD: (aiokafka_codecs.zstd_encode, aiokafka_codecs.zstd_decode),
    }
    for codec, (encode, decode) in pairs.items():
        assert decompress(codec, bytes(encode(payload)), BOUND) == payload
        assert bytes(decode(compress(codec, payload))) == payload


def test_snappy_raw_and_framed_payloads_are_read() -> None:
    payload = PAYLOADS[4]
    raw = bytes(cramjam.snappy.compress_raw(payload))
    assert decompress(SNAPPY, raw, BOUND) == payload
    framed = compress(SNAPPY, payload)
    assert framed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(SNAPPY, framed + framed, BOUND) == payload * 2, "streams may be concatenated"


def test_lz4_linked_blocks_and_checksums_are_read() -> None:
    for linked in (True, False):
        for checksum in (True, False):
            compressor = cramjam.lz4.Compressor(level=4, content_checksum=checksum, block_linked=linked)
            compressor.compress(PAYLOADS[4])
            assert decompress(LZ4, bytes(compressor.finish()), BOUND) == PAYLOADS[4]


def test_lz4_blocks_are_independent() -> None:
    assert compress(LZ4, PAYLOADS[4])[4] & 0x20, "Java reads no others"


def test_gzip_payload_may_have_several_members() -> None:
    twice = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(GZIP, twice, BOUND) == b"one two"
    with pytest.raises(CorruptBatch):
        decompress(GZIP, gzip.compress(b"") * 100_000, BOUND)


@pytest.mark.parametrize("codec", CODECS[1:], ids=CODEC_NAMES[1:])
def test_damaged_payload_is_corrupt(codec: int) -> None:
    rng = random.Random(codec)
    compressed = compress(codec, b"some text, and more text, and more text" * 50)
    for damaged in (b"", b"\x05", b"garbage that is no frame at all", compressed[: len(compressed) // 2]):
        with pytest.raises(CorruptBatch):
            decompress(codec, damaged, BOUND)
    for _ in range(300):
        data = bytearray(compressed)
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decompress(codec, data, BOUND)
        except CorruptBatch:
            pass


@pytest.mark.parametrize("codec", CODECS[1:], ids=CODEC_NAMES[1:])
def test_decompression_bomb_allocates_no_more_than_the_bound(codec: int) -> None:
    bomb = compress(codec, bytes(100_000_000))
    tracemalloc.start()
    with pytest.raises(DecompressionBomb):
        decompress(codec, bomb, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000


def test_announced_sizes_are_not_trusted() -> None:
    with pytest.raises(CorruptBatch):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"abc", BOUND)
    with pytest.raises(CorruptBatch):
        decompress(SNAPPY, compress(SNAPPY, b"x")[:16] + b"\xff\xff\xff\xff" + b"abc", BOUND)
    with pytest.raises(CorruptBatch):
        decompress(GZIP, zlib.compress(b"not gzip"), BOUND)


def test_unknown_codecs_are_refused() -> None:
    for codec in (5, 6, 7, -1):
        with pytest.raises(CorruptBatch):
            compress(codec, b"")
        with pytest.raises(CorruptBatch):
            decompress(codec, b"", 1)
