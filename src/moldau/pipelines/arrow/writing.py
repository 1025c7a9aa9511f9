"""Writing Arrow record batches to topics.

`ArrowProducer` gathers rows until there are enough for batches of a good size, encodes them in the caller's
thread and gives them to a `BatchWriter`, which sends in the background meanwhile. Always idempotent; with a
transactional id between `begin` and `commit`."""

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

#: Rows are encoded together once they have so many bytes, and never more of them at once.
_GATHERED_BYTES: Final = 4 << 20


class ArrowProducer:
    """Blocking, for one thread. Close it, or use it in a `with`."""

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
                f"There is no compression.type {compression}; give one of {', '.join(CODEC_NAMES)}",
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
        self._gathered: list[Any] = []
        self._gathered_bytes = 0
        self._topic: str | None = None

    def init_transactions(self) -> None:
        """Take the transactional id over: whoever had it is fenced, what it left undecided is ended."""
        self._writer.init_transactions()

    def marker(self, group: str, partition: TopicPartition) -> int | None:
        """The committed offset of a group, once no transaction can change it any more."""
        return self._writer.committed_offset(group, partition)

    def committed(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The same for all partitions of which the group has committed something, with its notes."""
        return self._writer.committed_offsets(group)

    def begin(self) -> None:
        self._writer.begin()

    def send(self, rows: Any, topic: str | None) -> int:
        """Take rows over, to `topic` or where their column `topic` says; how many rows that were.

        Returns before they are stored; raises why earlier ones could not be.
        """
        if self._gathered and (topic != self._topic or rows.schema != self._gathered[0].schema):
            self._encode()
        self._topic = topic
        self._gathered.append(rows)
        self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= _GATHERED_BYTES:
            self._encode()
        return int(rows.num_rows)

    def commit(self, marker: tuple[str, TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Store everything, commit the offset of a group with it, and end the transaction."""
        self.flush()
        if marker is not None:
            group, partition, offset = marker
            self._writer.send_offsets(group, {partition: offset})
        self._writer.commit()

    def abort(self) -> None:
        """End the transaction as if nothing had been sent in it."""
        self._forget()
        self._writer.abort()

    def flush(self) -> None:
        """Wait until everything that was sent is stored."""
        self._encode()
        self._writer.flush()

    def close(self) -> None:
        """Drop what was not flushed, and the connections."""
        self._forget()
        self._writer.close()

    def _encode(self) -> None:
        gathered, topic = self._gathered, self._topic
        self._forget()
        for rows in _pieces(gathered):
            to = destinations(rows, topic)
            now_ms = time.time_ns() // 1_000_000
            counts = self._writer.partition_counts(to.names)
            try:
                batches = self._encoder.encode(rows, to, counts, now_ms)
            except NoSuchPartition:
                # It may be new.
                counts = self._writer.partition_counts(to.names, fresh=True)
                batches = self._encoder.encode(rows, to, counts, now_ms)
            self._writer.write(batches)

    def _forget(self) -> None:
        self._gathered, self._gathered_bytes = [], 0

    def __enter__(self) -> ArrowProducer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pieces(gathered: list[Any]) -> list[Any]:
    """The rows as record batches of about `_GATHERED_BYTES`."""
    rows = gathered[0] if len(gathered) == 1 else pa.concat_batches(gathered) if gathered else None
    if rows is None or not rows.num_rows:
        return []
    step = max(1, rows.num_rows * _GATHERED_BYTES // max(rows.nbytes, _GATHERED_BYTES))
    return [rows.slice(begin, step) for begin in range(0, rows.num_rows, step)]
