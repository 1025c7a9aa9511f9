"""Producer and consumer for code on an event loop.

    async with AsyncProducer({"bootstrap.servers": "localhost:9092"}) as producer:
        metadata = await producer.send("orders", b"…")

    async with AsyncConsumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"}) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

They wrap the blocking clients, which are available as `producer` and `consumer` for calls that do not wait.
All calls of a consumer, and its rebalance listeners, run one after the other in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Generic, ParamSpec, TypeVar

from moldau.base.ids import TopicPartition
from moldau.client.consumer.commits import Offsets
from moldau.client.consumer.consumer import Consumer
from moldau.client.producer.producer import Producer
from moldau.client.records import ConsumerRecord, OffsetAndMetadata, ProducerRecord, RecordMetadata

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")


class AsyncProducer(Generic[K, V]):
    """Takes the arguments of `Producer`."""

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        self.producer: Producer[K, V] = Producer(config, **options)

    async def send(
        self, topic: str | ProducerRecord[K, V], value: V | None = None, key: K | None = None, **options: Any
    ) -> RecordMetadata:
        """Send a record and wait for its acknowledgement. For many records, gather or use `send_nowait`."""
        return await self.send_nowait(topic, value, key, **options)

    def send_nowait(
        self, topic: str | ProducerRecord[K, V], value: V | None = None, key: K | None = None, **options: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Send a record and return an awaitable. Blocks only if the buffer is full."""
        return asyncio.wrap_future(self.producer.send(topic, value, key, **options))

    async def flush(self, timeout: float | None = None) -> int:
        return await asyncio.to_thread(self.producer.flush, timeout)

    async def init_transactions(self) -> None:
        await asyncio.to_thread(self.producer.init_transactions)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer[K, V]]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises.

        A cancellation takes effect after the commit or abort.
        """
        block = self.producer.transaction()
        block.__enter__()
        try:
            yield self
        except BaseException as error:
            await _complete(block.__exit__, type(error), error, error.__traceback__)
            raise
        await _complete(block.__exit__, None, None, None)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_metadata: Any
    ) -> None:
        await asyncio.to_thread(self.producer.send_offsets_to_transaction, offsets, group_metadata)

    async def close(self, timeout: float | None = None) -> None:
        await asyncio.to_thread(self.producer.close, timeout)

    async def __aenter__(self) -> AsyncProducer[K, V]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _complete(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Run a function in a thread to its end; a cancellation takes effect afterwards."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


class AsyncConsumer(Generic[K, V]):
    """Takes the arguments of `Consumer`."""

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        self.consumer: Consumer[K, V] = Consumer(config, **options)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="moldau-consumer")

    def subscribe(self, topics: Iterable[str] | str = (), **options: Any) -> None:
        self.consumer.subscribe(topics, **options)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.consumer.assign(partitions)

    async def poll(self, timeout: float = 0.0) -> list[ConsumerRecord[K, V]]:
        """Return available records; those of a cancelled poll are returned by the next one."""
        work = self._thread.submit(self.consumer.poll, timeout)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            self._thread.submit(self._give_back, work)
            raise

    def _give_back(self, work: Future[list[ConsumerRecord[K, V]]]) -> None:
        if not work.cancelled() and work.exception() is None:
            self.consumer.give_back(work.result())

    async def commit(self, offsets: Offsets | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        return await self.call(self.consumer.commit_sync, offsets)

    async def call(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call any other blocking method of `consumer`, for example `end_offsets`, in its thread."""
        work = self._thread.submit(method, *args, **kwargs)
        return await asyncio.wrap_future(work)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        return self._each()

    async def _each(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        while True:
            self.consumer.give_back(await self.poll(1.0))
            while (record := self.consumer.next_given_back()) is not None:
                yield record

    async def close(self) -> None:
        try:
            await self.call(self.consumer.close)
        finally:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncConsumer[K, V]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
