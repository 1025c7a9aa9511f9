"""Writes records to one topic, in their order, with or without a caller that awaits the acknowledgement.

Writes that wait while others are sent form the next batches. A write that is awaited fails with the error of
its batch; one that is not awaited is repeated. `take_over` makes this process the only one that writes with
its transactional id (`exactly.once.source.support`): earlier leaders of the group are fenced.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.client.partitioners import partition_for_key
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.connect.storage.types import Record
from moldau.protocol.records import Record as BatchRecord
from moldau.protocol.records import build_batch

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 10_000
_MAX_BYTES: Final = 500_000
_RETRY_S: Final = 0.5
_DELIVERY_TIMEOUT_MS: Final = 30_000


class _Write(NamedTuple):
    records: Sequence[Record]
    #: None if no caller awaits the acknowledgement.
    result: asyncio.Future[None] | None


class TopicWriter:
    def __init__(self, client: ClientSettings, topic: str, clock: Clock) -> None:
        self._client = client
        self._topic = topic
        self._clock = clock
        self._waiting: deque[_Write] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: AsyncBatchWriter | None = None
        self._transactional_id: str | None = None
        self._writing: asyncio.Task[None] | None = None

    async def write(self, records: Sequence[Record]) -> None:
        """Write records, and return when they are acknowledged; `KafkaError` if they are not."""
        result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(_Write(records, result))
        await asyncio.shield(result)

    def write_soon(self, records: Sequence[Record]) -> None:
        """Write records without waiting, again after errors."""
        self._add(_Write(records, None))

    async def flush(self) -> None:
        """Wait until no write waits."""
        await self._idle.wait()

    async def take_over(self, transactional_id: str | None) -> None:
        """Write with a transactional id from now on, and fence others with it; None: write without."""
        await self._idle.wait()
        await self._close_writer()
        self._transactional_id = transactional_id
        if transactional_id is not None:
            await self._opened()

    async def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self._close_writer()

    def _add(self, write: _Write) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            if write.result is None:
                logger.warning("The topic %s cannot be written; a status is lost", self._topic)
                return
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many writes are waiting; retry later.")
        self._waiting.append(write)
        self._idle.clear()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_waiting())

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                # Writes of the same turn of the event loop share batches.
                await asyncio.sleep(0)
                chosen = self._choose()
                try:
                    await self._send([record for each in chosen for record in each.records])
                except (KafkaError, OSError) as error:
                    await self._failed(chosen, error)
                else:
                    for each in chosen:
                        if each.result is not None and not each.result.done():
                            each.result.set_result(None)
        finally:
            self._writing = None
            self._idle.set()

    def _choose(self) -> list[_Write]:
        """Take writes from the queue: the first, and more up to the size of a batch."""
        chosen = [self._waiting.popleft()]
        size = _size(chosen[0].records)
        while self._waiting and size + _size(self._waiting[0].records) <= _MAX_BYTES:
            chosen.append(self._waiting.popleft())
            size += _size(chosen[-1].records)
        return chosen

    async def _failed(self, chosen: list[_Write], error: Exception) -> None:
        """Report an error to those that wait; repeat the other writes after a pause."""
        logger.warning("The topic %s could not be written: %s", self._topic, error)
        await self._close_writer()
        for each in reversed(chosen):
            if each.result is None:
                self._waiting.appendleft(each)
            elif not each.result.done():
                each.result.set_exception(error)
                # A caller that was cancelled does not retrieve it.
                each.result.exception()
        if self._waiting:
            await asyncio.sleep(_RETRY_S)

    async def _send(self, records: Sequence[Record]) -> None:
        writer = await self._opened()
        count = (await writer.partition_counts([self._topic]))[self._topic]
        by_partition: dict[int, list[Record]] = {}
        for record in records:
            by_partition.setdefault(partition_for_key(record[0], count), []).append(record)
        now = self._clock.time_ms()
        batches = [
            (TopicPartition(self._topic, index), _batch(part, now))
            for index, group in by_partition.items()
            for part in _parts(group)
        ]
        if self._transactional_id is None:
            await writer.write(batches)
            await writer.flush()
        else:
            writer.begin()
            await writer.write(batches)
            await writer.commit()

    async def _opened(self) -> AsyncBatchWriter:
        if self._writer is None:
            writer = AsyncBatchWriter(
                self._client,
                transactional_id=self._transactional_id,
                delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
            )
            if self._transactional_id is not None:
                try:
                    await writer.init_transactions()
                except BaseException:
                    await writer.close()
                    raise
            self._writer = writer
        return self._writer

    async def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close()


def _size(records: Sequence[Record]) -> int:
    return sum(len(key) + len(value or b"") + 32 for key, value in records)


def _parts(records: Sequence[Record]) -> list[list[Record]]:
    parts: list[list[Record]] = [[]]
    size = 0
    for record in records:
        size += _size([record])
        if parts[-1] and size > _MAX_BYTES:
            parts.append([])
            size = _size([record])
        parts[-1].append(record)
    return parts


def _batch(records: Sequence[Record], timestamp_ms: int) -> bytearray:
    return build_batch(
        [BatchRecord(index, timestamp_ms, key, value, ()) for index, (key, value) in enumerate(records)]
    )
