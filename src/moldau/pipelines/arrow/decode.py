"""Record batches of a partition as Arrow record batches with the columns of Spark's Kafka connector.

How it works. The batches a reader sees are gathered into chunks of about `MAX_ROWS` rows and `MAX_BYTES`
bytes; the kernel takes a whole chunk apart in one call, straight into the buffers of the columns. Payloads
that are not compressed are read where they were received. What a chunk needs at most is known before (every
byte of a key or value was a byte of the payload), so buffers are allocated once and cut to what was used.

Columns that are the same in every row (topic, partition, timestamp type) are made once and sliced.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.client.batches import CorruptRecords, FetchedBatches, visible_batches
from moldau.pipelines.arrow import kernel
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import BATCH_HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, batch_payload

MAX_ROWS: Final = 64 * 1024
MAX_BYTES: Final = 16 * 1024 * 1024

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", _HEADER))
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")

#: Exactly what Spark makes of the connector's columns.
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
    """Decodes the records of one partition from offset `start` up to, not including, `end`."""

    def __init__(self, partition: TopicPartition, start: int, end: int, *, include_headers: bool) -> None:
        self._partition = partition
        self._start, self._end = start, end
        self._include_headers = include_headers
        self._schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
        self._constants: dict[tuple[object, Any], Any] = {}

    def decode(self, fetched: FetchedBatches) -> Iterator[Any]:
        """The records as Arrow record batches; `CorruptRecords` at the first batch that is damaged."""
        for chunk in self._chunks(fetched):
            rows = self._columns(chunk)
            for position in range(0, rows.num_rows, MAX_ROWS):
                yield rows if rows.num_rows <= MAX_ROWS else rows.slice(position, MAX_ROWS)

    def _chunks(self, fetched: FetchedBatches) -> Iterator[_Chunk]:
        chunk = _Chunk(fetched)
        for position, header in visible_batches(fetched):
            if header.last_offset < self._start or header.base_offset >= self._end:
                continue
            if not chunk.takes(header):
                yield chunk
                chunk = _Chunk(fetched)
            chunk.add(position, header)
        if chunk.headers:
            yield chunk

    def _columns(self, chunk: _Chunk) -> Any:
        data, table = chunk.source()
        capacity, size = chunk.rows, chunk.size
        offsets, timestamps, header_at = (pa.allocate_buffer(8 * capacity) for _ in range(3))
        keys, values = _Fields(capacity, size), _Fields(capacity, size)
        results = array("q", bytes(8 * kernel.RESULTS))
        status = kernel.decode_records(
            *(data.address, _address(table), len(chunk.headers), self._start, self._end),
            *(offsets.address, timestamps.address, header_at.address),
            *(keys.ends.address, keys.data.address, keys.bits.address),
            *(values.ends.address, values.data.address, values.bits.address, _address(results)),
        )
        if status:
            damaged = chunk.headers[results[kernel.FAILED_BATCH]]
            raise CorruptRecords(self._partition, damaged.base_offset, kernel.REASONS[status])
        rows = results[kernel.ROWS]
        timestamp_type = chunk.timestamp_type
        columns = [
            keys.array(pa.binary(), rows, results[kernel.KEY_BYTES], results[kernel.NULL_KEYS]),
            values.array(pa.binary(), rows, results[kernel.VALUE_BYTES], results[kernel.NULL_VALUES]),
            self._constant(self._partition.topic, pa.string(), rows),
            self._constant(self._partition.partition, pa.int32(), rows),
            pa.Array.from_buffers(pa.int64(), rows, [None, offsets.slice(0, 8 * rows)], 0),
            pa.Array.from_buffers(TIMESTAMP_TYPE, rows, [None, timestamps.slice(0, 8 * rows)], 0),
            self._constant(timestamp_type, pa.int32(), rows),
        ]
        if self._include_headers:
            columns.append(_headers(data, header_at, rows, results))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _constant(self, value: object, kind: Any, rows: int) -> Any:
        known = self._constants.get((value, kind))
        if known is None or len(known) < rows:
            known = pa.repeat(pa.scalar(value, kind), max(rows, 1024))
            self._constants[value, kind] = known
        return known.slice(0, rows)


class _Chunk:
    """Batches of one answer that are decoded together."""

    def __init__(self, fetched: FetchedBatches) -> None:
        self._fetched = fetched
        self.headers: list[BatchHeader] = []
        self._positions: list[int] = []
        self._payloads: list[bytes | None] = []
        self.rows = 0
        self.size = 0

    @property
    def timestamp_type(self) -> int:
        return self.headers[0].timestamp_type

    def takes(self, header: BatchHeader) -> bool:
        if not self.headers:
            return True
        full = self.rows + header.records_count > MAX_ROWS or self.size + header.size_in_bytes > MAX_BYTES
        return not full and header.timestamp_type == self.timestamp_type

    def add(self, position: int, header: BatchHeader) -> None:
        payload = None
        size = header.size_in_bytes - BATCH_HEADER_SIZE
        if header.codec:
            payload = self._decompressed(position, header)
            size = len(payload)
        if not 0 <= header.records_count * kernel.SMALLEST_RECORD <= size:
            reason = f"{header.records_count} records announced in {size} bytes"
            raise CorruptRecords(self._fetched.partition, header.base_offset, reason)
        self.headers.append(header)
        self._positions.append(position)
        self._payloads.append(payload)
        self.rows += header.records_count
        self.size += size

    def _decompressed(self, position: int, header: BatchHeader) -> bytes:
        batch = self._fetched.data[position : position + header.size_in_bytes]
        try:
            return batch_payload(batch, header)
        except CorruptBatch as error:
            raise CorruptRecords(self._fetched.partition, header.base_offset, str(error)) from error

    def source(self) -> tuple[Any, array[int]]:
        """A buffer with all payloads, and for each batch what the kernel wants to know."""
        begins = [position + BATCH_HEADER_SIZE for position in self._positions]
        ends = [at + each.size_in_bytes for at, each in zip(self._positions, self.headers, strict=True)]
        data: bytes | memoryview = self._fetched.data
        if any(payload is not None for payload in self._payloads):
            parts = [
                data[begin:end] if payload is None else payload
                for payload, begin, end in zip(self._payloads, begins, ends, strict=True)
            ]
            data = b"".join(parts)
            begins, ends, position = [], [], 0
            for part in parts:
                begins.append(position)
                position += len(part)
                ends.append(position)
        table = array("q")
        for header, begin, end in zip(self.headers, begins, ends, strict=True):
            by_broker = header.timestamp_type == LOG_APPEND_TIME
            append_time = header.max_timestamp if by_broker else kernel.CREATE_TIME
            table.extend(
                (begin, end, header.base_offset, header.base_timestamp, append_time, header.records_count)
            )
        return pa.py_buffer(data), table


class _Fields:
    """The buffers of a binary column with room for `capacity` rows and `size` bytes."""

    def __init__(self, capacity: int, size: int) -> None:
        self.ends = pa.allocate_buffer(4 * (capacity + 1))
        self.data = pa.allocate_buffer(size)
        self.bits = pa.py_buffer(bytearray((capacity + 7) // 8))

    def array(self, kind: Any, rows: int, size: int, nulls: int) -> Any:
        buffers = [self.bits if nulls else None, self.ends.slice(0, 4 * (rows + 1)), self.data.slice(0, size)]
        return pa.Array.from_buffers(kind, rows, buffers, nulls)


def _headers(data: Any, header_at: Any, rows: int, results: array[int]) -> Any:
    count, size = results[kernel.HEADERS], results[kernel.HEADER_BYTES]
    list_ends = pa.allocate_buffer(4 * (rows + 1))
    keys, values = _Fields(count, size), _Fields(count, size)
    nulls = kernel.decode_headers(
        *(data.address, data.size, header_at.address, rows, list_ends.address),
        *(keys.ends.address, keys.data.address),
        *(values.ends.address, values.data.address, values.bits.address),
    )
    ends = array("i", bytes(keys.ends))
    key_size = ends[count]
    value_size = array("i", bytes(values.ends))[count]
    names = keys.array(pa.string(), count, key_size, 0)
    if not _is_utf8(keys.data.slice(0, key_size)):
        raw = keys.array(pa.binary(), count, key_size, 0).to_pylist()
        names = pa.array([name.decode(errors="replace") for name in raw], pa.string())
    contents = values.array(pa.binary(), count, value_size, nulls)
    pairs = pa.StructArray.from_arrays([names, contents], fields=list(_HEADER))
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, list_ends], 0, 0, [pairs])


def _is_utf8(data: Any) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True


def _address(numbers: array[int]) -> int:
    return numbers.buffer_info()[0]
