"""Encode the rows of Arrow columns as record batches of any number of topics and partitions.

The column `value` is required; `key`, `topic`, `partition`, `headers` and `timestamp` are optional. The
partition of a row is the one it names, else that of its key (the hash of Java's producer), else the topic's
current partition for rows without a key, which changes after about one batch. The kernel writes all batches
of a call into one buffer; uncompressed batches are sent from there without a copy.

Invariants: rows of a partition keep their order; a batch has at most `batch_bytes` before compression, unless
a single record is larger.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.pipelines.arrow import encode_kernel as kernel
from moldau.pipelines.arrow.columns import (
    BinaryColumn,
    HeaderColumn,
    absent,
    binary_column,
    header_column,
    int_column,
    no_headers,
    timestamp_column,
)
from moldau.protocol.batch_header import BATCH_HEADER_SIZE, HEADER, LOG_OVERHEAD, MAGIC
from moldau.protocol.compression import compress

#: Below the default limit of a batch (message.max.bytes, 1048588).
BATCH_BYTES: Final = 512 * 1024

Batches = list[tuple[TopicPartition, bytearray | memoryview]]


class NoSuchPartition(KafkaError):
    """A row names a partition that its topic does not have."""


class Destinations(NamedTuple):
    """The topics of rows, and for each row the index of its topic."""

    names: Sequence[str]
    codes: Any


def destinations(rows: Any, topic: str | None) -> Destinations:
    """Return the topic of each row: `topic`, or the value of its column `topic`."""
    if topic is not None:
        return Destinations([topic], np.zeros(rows.num_rows, np.int32))
    if "topic" not in rows.schema.names:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, "No topic: set the option topic or add a column topic"
        )
    column = rows.column("topic")
    if column.null_count:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The column topic is null in some rows")
    encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    names = encoded.dictionary.cast(pa.string()).to_pylist()
    return Destinations(names, np.ascontiguousarray(encoded.indices.cast(pa.int32()).to_numpy()))


class Encoder:
    """Remembers between calls the current partition for rows without a key."""

    def __init__(
        self,
        *,
        codec: int = 0,
        level: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        randomness: random.Random | None = None,
    ) -> None:
        self._codec = codec
        self._level = level
        self._batch_bytes = batch_bytes
        self._random = randomness or random.Random()
        self._sticky: dict[str, tuple[int, int]] = {}

    def encode(
        self, rows: Any, to: Destinations, partition_counts: Mapping[str, int], now_ms: int
    ) -> Batches:
        """Return the record batches for an Arrow record batch."""
        if not rows.num_rows:
            return []
        columns = _Columns.of(rows, now_ms)
        counts = np.array([partition_counts[name] for name in to.names], np.int32)
        ends = np.cumsum(counts, dtype=np.int32)
        slots, slot_rows = self._choose(columns, to, counts, ends - counts)
        out, table = self._write(columns, slots, slot_rows)
        topic_of = np.searchsorted(ends, table[:, kernel.SLOT], side="right")
        view = memoryview(out)
        found: Batches = []
        for code, line in zip(topic_of.tolist(), table.tolist(), strict=True):
            partition = line[kernel.SLOT] - int(ends[code] - counts[code])
            found.append((TopicPartition(to.names[code], partition), self._batch(view, line)))
        return found

    def _choose(self, columns: _Columns, to: Destinations, counts: Any, first: Any) -> tuple[Any, Any]:
        rows = columns.rows
        numbers, bits, shift = columns.partition
        sticky = np.array([self._place(name, int(n)) for name, n in zip(to.names, counts, strict=True)])
        slots, slot_rows = np.empty(rows, np.int32), np.zeros(int(counts.sum()), np.int64)
        wrong = kernel.choose_slots(
            *(rows, to.codes.ctypes.data, counts.ctypes.data, first.ctypes.data),
            *columns.key.arguments(),
            *(columns.value.ends.ctypes.data, numbers.ctypes.data, bits.ctypes.data, shift),
            *(sticky.ctypes.data, self._batch_bytes, slots.ctypes.data, slot_rows.ctypes.data),
        )
        if wrong >= 0:
            name, count = to.names[to.codes[wrong]], counts[to.codes[wrong]]
            raise NoSuchPartition(
                ErrorCode.INVALID_PARTITIONS,
                f"A row names partition {numbers[wrong]} of {name}, which has partitions 0 to {count - 1}",
            )
        for name, (partition, size) in zip(to.names, sticky.tolist(), strict=True):
            self._sticky[name] = (partition, size)
        return slots, slot_rows

    def _place(self, topic: str, partitions: int) -> tuple[int, int]:
        partition, size = self._sticky.get(topic, (self._random.randrange(partitions), 0))
        return partition % partitions, size

    def _write(self, columns: _Columns, slots: Any, slot_rows: Any) -> tuple[Any, Any]:
        """Return a buffer with all batches, their headers still empty, and the table of their positions."""
        most = columns.most_bytes()
        # Two consecutive batches of a partition exceed the limit together, else they would be one.
        batches = 2 * most // self._batch_bytes + int(np.count_nonzero(slot_rows)) + 1
        out = np.empty(most + batches * BATCH_HEADER_SIZE, np.uint8)
        table = np.zeros((batches, kernel.BATCH_FIELDS), np.int64)
        order = np.empty(columns.rows, np.int32)
        count = kernel.encode_rows(
            *(columns.rows, len(slot_rows), slots.ctypes.data, slot_rows.ctypes.data, order.ctypes.data),
            *(columns.timestamps.ctypes.data, *columns.key.arguments(), *columns.value.arguments()),
            *columns.headers.arguments(),
            *(self._batch_bytes, out.ctypes.data, table.ctypes.data),
        )
        return out, table[:count]

    def _batch(self, out: memoryview, line: list[int]) -> bytearray | memoryview:
        batch: bytearray | memoryview = out[line[kernel.BEGIN] : line[kernel.END]]
        if self._codec:
            payload = compress(self._codec, batch[BATCH_HEADER_SIZE:], self._level)
            batch = bytearray(BATCH_HEADER_SIZE)
            batch += payload
        HEADER.pack_into(
            batch,
            0,
            *(0, len(batch) - LOG_OVERHEAD, -1, MAGIC, 0, self._codec, line[kernel.COUNT] - 1),
            *(line[kernel.BASE_TIMESTAMP], line[kernel.MAX_TIMESTAMP], -1, -1, -1, line[kernel.COUNT]),
        )
        return batch


class _Columns(NamedTuple):
    rows: int
    key: BinaryColumn
    value: BinaryColumn
    partition: tuple[Any, Any, int]
    headers: HeaderColumn
    timestamps: Any

    @classmethod
    def of(cls, rows: Any, now_ms: int) -> _Columns:
        count = rows.num_rows
        there = {
            name: rows.column(name)
            for name, kind in zip(rows.schema.names, rows.schema.types, strict=True)
            if not pa.types.is_null(kind) or name == "value"
        }
        if "value" not in there:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"There is no column value, only {', '.join(rows.schema.names)}"
            )
        partition, headers, timestamp = map(there.get, ("partition", "headers", "timestamp"))
        nothing = np.zeros(1, np.int32)
        return cls(
            count,
            binary_column("key", there["key"]) if "key" in there else absent(count),
            binary_column("value", there["value"]),
            (nothing, nothing, -1) if partition is None else int_column("partition", partition),
            no_headers() if headers is None else header_column(headers),
            np.full(count, now_ms, np.int64) if timestamp is None else timestamp_column(timestamp, now_ms),
        )

    def most_bytes(self) -> int:
        """Return the maximum size of the records, without batch headers."""
        headers = self.headers
        size = self.key.size + self.value.size + self.rows * kernel.ROW_OVERHEAD
        return size + headers.number * kernel.HEADER_OVERHEAD + headers.names.size + headers.contents.size
