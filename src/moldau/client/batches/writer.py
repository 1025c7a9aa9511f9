"""Write complete record batches exactly once, without parsing the records.

    with BatchWriter(settings) as writer:
        writer.write([(TopicPartition("orders", 0), batch)])
        writer.flush()

`AsyncBatchWriter` is for code on an event loop; `BatchWriter` has the same methods without `await`, and
sends while its caller creates the next batches. A batch has magic 2, may be compressed, and has base offset
0; producer id, epoch, sequence and CRC are filled in here, in place.

The writer is always idempotent, with acks=all: retries neither duplicate nor reorder records. With a
transactional id, `begin`, `commit` and `abort` form transactions. `ProducerFenced` means that another
producer has taken over the transactional id. After any other error, abort the transaction; without
transactions, close the writer, because it is unknown which records were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.batches.leaders import Leaders
from moldau.client.batches.sender import BatchSender
from moldau.client.batches.transactions import ProducerState
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.loop_thread import LoopThread
from moldau.client.wire.settings import ClientSettings

R = TypeVar("R")
Batches = Iterable[tuple[TopicPartition, bytearray | memoryview]]
Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]

DELIVERY_TIMEOUT_MS = 120_000
MAX_REQUEST_BYTES = 8 << 20
MAX_PENDING_BYTES = 32 << 20
REQUESTS_PER_NODE = 2


class AsyncBatchWriter:
    """`max_pending_bytes` bounds the bytes queued and in flight, as `buffer.memory` does.

    `on_stored` is called with partition, base offset and number of records of every acknowledged batch, in
    the order of the batches of a partition; a batch that had to be split is acknowledged in parts. The base
    offset is -1 if the broker does not know it any more.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        on_stored: Callable[[TopicPartition, int, int], None] | None = None,
    ) -> None:
        self.cluster = Cluster(settings)
        self._leaders = Leaders(self.cluster, delivery_timeout_ms)
        self._producer = ProducerState(
            self.cluster,
            transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            timeout_ms=delivery_timeout_ms,
        )
        self._sender = BatchSender(
            self.cluster,
            self._producer,
            self._leaders,
            delivery_timeout_ms=delivery_timeout_ms,
            max_request_bytes=max_request_bytes,
            max_pending_bytes=max_pending_bytes,
            requests_per_node=REQUESTS_PER_NODE,
            on_stored=on_stored,
        )

    @property
    def records_stored(self) -> int:
        return self._sender.records_stored

    async def partition_counts(self, topics: Iterable[str], *, fresh: bool = False) -> dict[str, int]:
        """Return the partition counts of topics, cached for some minutes unless `fresh`."""
        return await self._leaders.partition_counts(topics, fresh=fresh)

    async def write(self, batches: Batches) -> None:
        """Queue batches, waiting for free space; raise the error of an earlier batch, if any."""
        if self._producer.transactional_id is not None:
            self._expect(self._producer.in_transaction, "call begin() before write()")
        elif not self._producer.known:
            await self._producer.initialize()
        batches = list(batches)
        await self._leaders.partition_counts({partition.topic for partition, _ in batches})
        await self._sender.accept(batches)

    async def flush(self) -> None:
        """Wait until all batches are acknowledged."""
        await self._sender.flush()

    async def init_transactions(self) -> None:
        """Take over the transactional id: fence earlier producers and end their transactions."""
        self._expect(self._producer.transactional_id is not None, "the writer has no transactional id")
        await self._producer.initialize()
        self._sender.reset_sequences()

    def begin(self) -> None:
        self._expect(self._producer.known, "call init_transactions() first")
        self._expect(not self._producer.in_transaction, "a transaction is already open")
        self._producer.begin()

    async def send_offsets(self, group: str, offsets: Offsets) -> None:
        """Commit offsets of a group with the transaction."""
        self._expect(self._producer.in_transaction, "no transaction is open")
        await self._producer.commit_offsets(group, offsets)

    async def commit(self) -> None:
        """Flush and commit.

        After an error of the flush, abort the transaction. After an error of the commit itself its result
        is unknown until a new writer calls `init_transactions`.
        """
        self._expect(self._producer.in_transaction, "no transaction is open")
        await self.flush()
        if await self._producer.end(commit=True):
            self._sender.reset_sequences()

    async def abort(self) -> None:
        """Abort the transaction."""
        self._expect(self._producer.in_transaction, "no transaction is open")
        uncertain = await self._sender.drop()
        renewed = await self._producer.end(commit=False)
        if uncertain and not renewed:
            await self._producer.initialize()
        if uncertain or renewed:
            self._sender.reset_sequences()

    async def committed_offset(self, group: str, partition: TopicPartition) -> int | None:
        """Return the committed offset of a group, when no pending transaction can change it."""
        return await self._producer.committed_offset(group, partition)

    async def committed_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all committed offsets of a group, when no pending transaction can change them."""
        return await self._producer.committed_offsets(group)

    async def close(self) -> None:
        """Drop unacknowledged batches and close the connections. An open transaction times out."""
        await self._sender.close()
        self.cluster.close()

    def _expect(self, condition: bool, sentence: str) -> None:
        if not condition:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"{self._producer.transactional_id}: {sentence}")


class BatchWriter:
    """The batch writer without `await`. Its loop runs in a thread of its own."""

    def __init__(self, settings: ClientSettings, **options: Any) -> None:
        """Takes the arguments of `AsyncBatchWriter`."""
        self._thread = LoopThread("moldau-batch-writer")
        self._writer = AsyncBatchWriter(settings, **options)

    @property
    def records_stored(self) -> int:
        return self._writer.records_stored

    def partition_counts(self, topics: Iterable[str], *, fresh: bool = False) -> dict[str, int]:
        return self._run(self._writer.partition_counts(topics, fresh=fresh))

    def write(self, batches: Batches) -> None:
        self._run(self._writer.write(batches))

    def flush(self) -> None:
        self._run(self._writer.flush())

    def init_transactions(self) -> None:
        self._run(self._writer.init_transactions())

    def begin(self) -> None:
        self._writer.begin()

    def send_offsets(self, group: str, offsets: Offsets) -> None:
        self._run(self._writer.send_offsets(group, offsets))

    def commit(self) -> None:
        self._run(self._writer.commit())

    def abort(self) -> None:
        self._run(self._writer.abort())

    def committed_offset(self, group: str, partition: TopicPartition) -> int | None:
        return self._run(self._writer.committed_offset(group, partition))

    def committed_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._run(self._writer.committed_offsets(group))

    def close(self) -> None:
        if not self._thread.closed:
            self._run(self._writer.close())
            self._thread.close()

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        return self._thread.run(work)

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
