"""Decode the record batches of a partition into Arrow columns, those of Spark's Kafka connector.

The kernel reads the headers of all batches of a fetch response into a table; checksums are verified, and
batches that readers must not see get an empty payload. Then it decodes the records into the buffers of the
columns: all batches in place, or, if batches are compressed, chunks of about `MAX_BYTES`. The maximum size of
a buffer is known in advance (every byte of a key or value is a byte of the payload), so buffers are allocated
once and sliced to the size used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.client.batches.reader import CorruptRecords, FetchedBatches, visible_batches
from moldau.pipelines.arrow import decode_kernel as kernel
from moldau.protocol.batch_header import CODEC_MASK
from moldau.protocol.compression import decompress
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import BATCH_HEADER_SIZE, MAX_DECOMPRESSED, batch_crc

MAX_ROWS: Final = 64 * 1024
MAX_BYTES: Final = 2 * 1024 * 1024

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", _HEADER))
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")

#: The Arrow schema that Spark derives from the columns of the source.
SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP_TYPE),
        ("timestampType", pa.int32()),
    ]
)
SCHEMA_WITH_HEADERS: Final = SCHEMA.append(pa.field("headers", HEADERS_TYPE))


class Decoder:
    """Decodes the records of one partition from offset `start` to `end` (exclusive)."""

    def __init__(self, partition: TopicPartition, start: int, end: int, *, include_headers: bool) -> None:
        self._partition = partition
        self._start, self._end = start, end
        self._include_headers = include_headers
        self._schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
        self._topics = self._partitions = pa.nulls(0)

    def decode(self, fetched: FetchedBatches) -> Iterator[Any]:
        """Yield the records as Arrow record batches; raise `CorruptRecords` at the first corrupt batch."""
        start = max(self._start, fetched.first_offset)
        table = self._scan(fetched.data, start)
        if fetched.aborted:
            _hide_aborted(table, fetched)
        visible = table[table[:, kernel.PAYLOAD_END] > table[:, kernel.PAYLOAD_BEGIN]]
        if not len(visible):
            return
        compressed = (visible[:, kernel.ATTRIBUTES] & CODEC_MASK).any()
        chunks = self._decompressed(fetched.data, visible) if compressed else iter([(fetched.data, visible)])
        for data, batches in chunks:
            rows = self._rows(data, batches, start)
            for position in range(0, rows.num_rows, MAX_ROWS):
                yield rows if rows.num_rows <= MAX_ROWS else rows.slice(position, MAX_ROWS)

    def _scan(self, data: memoryview, start: int) -> Any:
        """Return the table of batches after verifying their checksums."""
        table = np.empty((len(data) // BATCH_HEADER_SIZE + 1, kernel.BATCH_FIELDS), np.int64)
        results = np.zeros(kernel.RESULTS, np.int64)
        status = kernel.scan_batches(
            pa.py_buffer(data).address, len(data), start, self._end, *_addresses(table, results)
        )
        valid = results[kernel.BATCHES]
        self._check(kernel.REASONS[status], table[valid])
        table = table[:valid]
        fields = (kernel.POSITION, kernel.SIZE, kernel.CRC, kernel.BASE_OFFSET)
        for position, size, crc, offset in zip(*(table[:, each].tolist() for each in fields), strict=True):
            if batch_crc(data, position, size) != crc:
                raise CorruptRecords(self._partition, offset, "the CRC of the batch does not match")
        return table

    def _check(self, reason: str, batch: Any) -> None:
        if reason:
            raise CorruptRecords(self._partition, int(batch[kernel.BASE_OFFSET]), reason)

    def _decompressed(self, data: memoryview, table: Any) -> Iterator[tuple[bytes, Any]]:
        """Yield chunks of decompressed payloads with the table of their batches."""
        parts: list[bytes | memoryview] = []
        size = rows = first = 0
        table = table.copy()
        for index, batch in enumerate(table):
            payload = self._payload(data, batch)
            count = int(batch[kernel.COUNT])
            if parts and (size + len(payload) > MAX_BYTES or rows + count > MAX_ROWS):
                yield b"".join(parts), table[first:index]
                parts, size, rows, first = [], 0, 0, index
            batch[kernel.PAYLOAD_BEGIN], batch[kernel.PAYLOAD_END] = size, size + len(payload)
            parts.append(payload)
            size, rows = size + len(payload), rows + count
        yield b"".join(parts), table[first:]

    def _payload(self, data: memoryview, batch: Any) -> bytes | memoryview:
        payload: bytes | memoryview = data[batch[kernel.PAYLOAD_BEGIN] : batch[kernel.PAYLOAD_END]]
        codec, offset = int(batch[kernel.ATTRIBUTES] & CODEC_MASK), int(batch[kernel.BASE_OFFSET])
        if codec:
            try:
                payload = decompress(codec, payload, MAX_DECOMPRESSED)
            except CorruptBatch as error:
                raise CorruptRecords(self._partition, offset, str(error)) from error
        if not 0 <= batch[kernel.COUNT] * kernel.MIN_RECORD_SIZE <= len(payload):
            reason = f"the batch announces {batch[kernel.COUNT]} records in {len(payload)} bytes"
            raise CorruptRecords(self._partition, offset, reason)
        return payload

    def _rows(self, data: bytes | memoryview, table: Any, start: int) -> Any:
        table = np.ascontiguousarray(table)
        source, results = pa.py_buffer(data), np.zeros(kernel.RESULTS, np.int64)
        capacity = int(table[:, kernel.COUNT].sum())
        size = int((table[:, kernel.PAYLOAD_END] - table[:, kernel.PAYLOAD_BEGIN]).sum())
        offsets, timestamps, header_at = (pa.allocate_buffer(8 * capacity) for _ in range(3))
        timestamp_types = pa.allocate_buffer(4 * capacity)
        keys, values = _Fields(capacity, size), _Fields(capacity, size)
        status = kernel.decode_records(
            *(source.address, *_addresses(table), len(table), start, self._end),
            *(offsets.address, timestamps.address, timestamp_types.address, header_at.address),
            *(*keys.addresses(), *values.addresses(), *_addresses(results)),
        )
        self._check(kernel.REASONS[status], table[results[kernel.FAILED_BATCH]])
        rows = int(results[kernel.ROWS])
        columns = [
            keys.array(pa.binary(), rows, results[kernel.KEY_BYTES], results[kernel.NULL_KEYS]),
            values.array(pa.binary(), rows, results[kernel.VALUE_BYTES], results[kernel.NULL_VALUES]),
            *self._constants(rows),
            pa.Array.from_buffers(pa.int64(), rows, [None, offsets.slice(0, 8 * rows)], 0),
            pa.Array.from_buffers(TIMESTAMP_TYPE, rows, [None, timestamps.slice(0, 8 * rows)], 0),
            pa.Array.from_buffers(pa.int32(), rows, [None, timestamp_types.slice(0, 4 * rows)], 0),
        ]
        if self._include_headers:
            columns.append(_headers(source, header_at, rows, results))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _constants(self, rows: int) -> tuple[Any, Any]:
        """Return the columns topic and partition, constant arrays that are built once and sliced."""
        if len(self._topics) < rows:
            self._topics = pa.repeat(pa.scalar(self._partition.topic, pa.string()), rows)
            self._partitions = pa.repeat(pa.scalar(self._partition.partition, pa.int32()), rows)
        return self._topics.slice(0, rows), self._partitions.slice(0, rows)


class _Fields:
    """The buffers of a binary column for `capacity` rows and `size` bytes."""

    def __init__(self, capacity: int, size: int) -> None:
        self._ends = pa.allocate_buffer(4 * (capacity + 1))
        self._data = pa.allocate_buffer(size)
        self._bits = pa.py_buffer(bytearray((capacity + 7) // 8))

    def addresses(self) -> tuple[int, int, int]:
        return self._ends.address, self._data.address, self._bits.address

    def array(self, kind: Any, rows: int, size: int, nulls: int) -> Any:
        ends, data = self._ends.slice(0, 4 * (rows + 1)), self._data.slice(0, int(size))
        return pa.Array.from_buffers(kind, rows, [self._bits if nulls else None, ends, data], int(nulls))


def _hide_aborted(table: Any, fetched: FetchedBatches) -> None:
    visible = [position for position, _ in visible_batches(fetched)]
    hidden = ~np.isin(table[:, kernel.POSITION], visible)
    table[hidden, kernel.PAYLOAD_END] = table[hidden, kernel.PAYLOAD_BEGIN]


def _headers(source: Any, header_at: Any, rows: int, results: Any) -> Any:
    count, size = int(results[kernel.HEADERS]), int(results[kernel.HEADER_BYTES])
    list_ends = pa.allocate_buffer(4 * (rows + 1))
    names, contents = _Fields(count, size), _Fields(count, size)
    kernel.decode_headers(
        *(source.address, source.size, header_at.address, rows, list_ends.address),
        *(*names.addresses(), *contents.addresses(), *_addresses(results)),
    )
    name_bytes, nulls = results[kernel.KEY_BYTES], results[kernel.NULL_HEADERS]
    keys = names.array(pa.binary(), count, name_bytes, 0)
    values = contents.array(pa.binary(), count, results[kernel.VALUE_BYTES], nulls)
    pairs = pa.StructArray.from_arrays([_text(keys), values], fields=list(_HEADER))
    # A record without headers has null, as in Spark's Kafka connector, not an empty list.
    has_some = np.diff(np.frombuffer(list_ends, np.int32, rows + 1)) > 0
    valid = pa.py_buffer(np.packbits(has_some, bitorder="little"))
    nulls = rows - int(has_some.sum())
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [valid, list_ends], nulls, 0, [pairs])


def _text(names: Any) -> Any:
    """Convert to strings; invalid UTF-8 becomes U+FFFD, as in Java."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())


def _addresses(*tables: Any) -> tuple[int, ...]:
    return tuple(each.ctypes.data for each in tables)
