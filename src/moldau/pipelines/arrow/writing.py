"""Write Arrow record batches to topics.

`ArrowProducer` accumulates rows until they fill batches of a good size, encodes them in the caller's thread
and passes them to a `BatchWriter`, which sends them in the background. It is always idempotent; with a
transactional id, rows are sent between `begin` and `commit`.
"""

from __future__ import annotations

import time
from typing import Any, Final

import pyarrow as pa

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.batches.writer import DELIVERY_TIMEOUT_MS, MAX_PENDING_BYTES, BatchWriter
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.arrow.encode import BATCH_BYTES, Encoder, NoSuchPartition, destinations
from moldau.protocol.compression import CODEC_NAMES

#: Rows are encoded as soon as this many bytes are accumulated, and in pieces of this size.
_ACCUMULATED_BYTES: Final = 4 << 20


class ArrowProducer:
    """A blocking producer for one thread; also a context manager."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        compression: str = "none",
        compression_level: int | None = None,
        batch_size: int = BATCH_BYTES,
        buffer_memory: int = MAX_PENDING_BYTES,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
    ) -> None:
        if compression not in CODEC_NAMES:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Unknown compression.type {compression}; use one of {', '.join(CODEC_NAMES)}",
            )
        codec = CODEC_NAMES.index(compression)
        self._encoder = Encoder(codec=codec, level=compression_level, batch_bytes=batch_size)
        self._writer = BatchWriter(
            settings,
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            max_pending_bytes=buffer_memory,
        )
        self._accumulated: list[Any] = []
        self._accumulated_bytes = 0
        self._topic: str | None = None

    def init_transactions(self) -> None:
        """Acquire the transactional id: fence its previous owner and abort its open transaction."""
        self._writer.init_transactions()

    def marker(self, group: str, partition: TopicPartition) -> int | None:
        """Return the committed offset of a group once no open transaction can change it."""
        return self._writer.committed_offset(group, partition)

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets and metadata of a group for all partitions."""
        return self._writer.committed_offsets(group)

    def begin(self) -> None:
        self._writer.begin()

    def send(self, rows: Any, topic: str | None) -> int:
        """Send rows to `topic` or to the topics in their column `topic`; return the number of rows.

        Returns before the rows are written; raises the error of earlier rows that could not be written.
        """
        if self._accumulated and (topic != self._topic or rows.schema != self._accumulated[0].schema):
            self._encode()
        self._topic = topic
        self._accumulated.append(rows)
        self._accumulated_bytes += rows.nbytes
        if self._accumulated_bytes >= _ACCUMULATED_BYTES:
            self._encode()
        return int(rows.num_rows)

    def commit(self, marker: tuple[str, TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Flush, add the offset of a group to the transaction, and commit it."""
        self.flush()
        if marker is not None:
            group, partition, offset = marker
            self._writer.send_offsets(group, {partition: offset})
        self._writer.commit()

    def abort(self) -> None:
        """Abort the transaction and discard the accumulated rows."""
        self._discard()
        self._writer.abort()

    def flush(self) -> None:
        """Wait until all rows sent so far are written."""
        self._encode()
        self._writer.flush()

    def close(self) -> None:
        """Discard rows that were not flushed, and close the connections."""
        self._discard()
        self._writer.close()

    def _encode(self) -> None:
        accumulated, topic = self._accumulated, self._topic
        self._discard()
        for rows in _pieces(accumulated):
            to = destinations(rows, topic)
            now_ms = time.time_ns() // 1_000_000
            counts = self._writer.partition_counts(to.names)
            try:
                batches = self._encoder.encode(rows, to, counts, now_ms)
            except NoSuchPartition:
                # The partition may be new.
                counts = self._writer.partition_counts(to.names, fresh=True)
                batches = self._encoder.encode(rows, to, counts, now_ms)
            self._writer.write(batches)

    def _discard(self) -> None:
        self._accumulated, self._accumulated_bytes = [], 0

    def __enter__(self) -> ArrowProducer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pieces(accumulated: list[Any]) -> list[Any]:
    """Return the rows as record batches of about `_ACCUMULATED_BYTES`."""
    rows = (
        accumulated[0] if len(accumulated) == 1 else pa.concat_batches(accumulated) if accumulated else None
    )
    if rows is None or not rows.num_rows:
        return []
    step = max(1, rows.num_rows * _ACCUMULATED_BYTES // max(rows.nbytes, _ACCUMULATED_BYTES))
    return [rows.slice(begin, step) for begin in range(0, rows.num_rows, step)]
