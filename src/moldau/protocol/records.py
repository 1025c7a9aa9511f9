"""Record batches, magic 2: the names that other packages import.

A broker does not parse the records it stores and serves; `batch_header` is enough to read the header, verify
the checksum, and write offset and epoch in place. Parsing (`record_reader`) and building batches
(`record_writer`) cost time per record and are for compaction, timestamp search, validation of compacted
topics, the metadata log and tools.
"""

from __future__ import annotations

from moldau.protocol.batch_header import (
    BATCH_HEADER_SIZE,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    UnsupportedMagic,
    batch_crc,
    check_crc,
    iter_batches,
    patch_batch,
    read_batch_header,
    set_max_timestamp,
)
from moldau.protocol.errors import CorruptBatch, DecompressionBomb
from moldau.protocol.record_reader import (
    MAX_DECOMPRESSED,
    Record,
    batch_payload,
    iter_first_records,
    iter_records,
)
from moldau.protocol.record_writer import build_batch, recompress

__all__ = [
    "BATCH_HEADER_SIZE",
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAX_DECOMPRESSED",
    "NO_TIMESTAMP",
    "BatchHeader",
    "CorruptBatch",
    "DecompressionBomb",
    "Record",
    "UnsupportedMagic",
    "batch_crc",
    "batch_payload",
    "build_batch",
    "check_crc",
    "iter_batches",
    "iter_first_records",
    "iter_records",
    "patch_batch",
    "read_batch_header",
    "recompress",
    "set_max_timestamp",
]
