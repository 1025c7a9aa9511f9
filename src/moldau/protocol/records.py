"""Record batches, magic 2: one place to import from.

A batch is opaque on its way through a broker, and all that is needed there is in `batch_header`: read the
header, check the checksum, patch offset and epoch in place. Opening batches (`record_reader`) and making them
(`record_writer`) costs per record and is for compaction, timestamp search, validation of compacted topics,
the metadata log and tools.
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
from moldau.protocol.record_reader import MAX_DECOMPRESSED, Record, batch_payload, iter_records
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
    "iter_records",
    "patch_batch",
    "read_batch_header",
    "recompress",
    "set_max_timestamp",
]
