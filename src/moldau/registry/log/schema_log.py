"""The log of the registry: one partition, read from its beginning to its end and followed from there.

`replay` receives every record once, in the order of offsets, also the records that this instance has
written: when `append` returns, they have been replayed. A record whose write was acknowledged is replayed at
once if everything before it has been; the fetch that returns it later skips it.

If a write fails and its result is unknown, the caller discards its state and calls `reload`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Final

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.reader import (
    CorruptRecords,
    FetchedBatches,
    OffsetRange,
    PartitionReader,
    ReadOptions,
    visible_batches,
)
from moldau.client.wire.cluster import Cluster
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import iter_batches, iter_records
from moldau.registry.log.settings import LogSettings
from moldau.registry.log.topic import UnusableTopic, prepare_topic
from moldau.registry.log.writer import FencedWriter, KeyValue, Written
from moldau.registry.state.records import DamagedRecord

logger = logging.getLogger(__name__)

#: Called with key, value, offset and timestamp of each record.
Replay = Callable[[bytes, bytes | None, int, int], None]
#: Written by a new leader; the registry ignores it.
NOOP: Final = (b'{"keytype":"NOOP","magic":0}', None)

_NO_END: Final = 1 << 62
_FOR_EVER_MS: Final = 1 << 53
#: The header of a batch, and of one record.
_BATCH_OVERHEAD: Final = 100


class SchemaLog:
    def __init__(self, settings: LogSettings, clock: Clock) -> None:
        self._settings = settings
        self._cluster = Cluster(settings.client)
        #: Apart from the connections that fetch: a broker answers the requests of a connection in their
        #: order, and a fetch waits for new records.
        self._questions = Cluster(settings.client)
        self._writer = FencedWriter(settings, clock, self._written)
        self._replay: Replay = _ignore
        #: The offset after the last record that was replayed.
        self._position = 0
        self._following: asyncio.Task[None] | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        #: The largest size of the key and value of a record.
        self.max_bytes = 0

    async def start(self, replay: Replay) -> None:
        """Check or create the topic, read it to its end, then follow it; `UnusableTopic` if it is damaged."""
        self._replay = replay
        largest = await prepare_topic(self._questions, self._settings)
        self.max_bytes = largest - _BATCH_OVERHEAD
        self._writer.limit(self.max_bytes)
        await self._read_from_start()

    @property
    def cluster_id(self) -> str | None:
        return self._questions.cluster_id

    async def failed(self) -> str:
        """Wait until the topic cannot be followed any more, and return the reason."""
        while True:
            following = self._following
            if following is not None:
                await asyncio.wait([following])
                if following is self._following and not following.cancelled():
                    return f"The topic {self._settings.topic} cannot be read: {following.exception()}"
            await asyncio.sleep(0.1)

    async def lead(self) -> None:
        """Become the only writer, and replay everything that earlier leaders have written."""
        await self._writer.initialize()
        await self.append([NOOP])

    def resign(self) -> None:
        """Refuse to write until `lead` is called again."""
        self._writer.revoke(
            KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This instance is not the leader of the registry.")
        )

    async def append(self, records: Sequence[KeyValue]) -> int:
        """Write records as one batch and return the last offset, once acknowledged by all in-sync replicas.

        `KafkaError` if they are not stored, or if that is unknown; `Fenced` if another instance leads.
        """
        offset = await self._writer.append(records)
        await self.wait_for(offset)
        return offset

    async def wait_for(self, offset: int) -> None:
        """Wait until the record at `offset` has been replayed."""
        if offset < self._position:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (offset, next(self._numbers), waiter))
        await waiter

    async def read_to_end(self) -> None:
        """Wait until every record that is in the topic now has been replayed."""
        await self.wait_for(await self._offset(OffsetSpec.LATEST) - 1)

    async def reload(self) -> None:
        """Replay the topic from its beginning; the caller has discarded its state."""
        await self._stop_following()
        await self._read_from_start()

    async def close(self) -> None:
        await self._stop_following()
        await self._writer.close()
        self._cluster.close()
        self._questions.close()

    async def _read_from_start(self) -> None:
        start, end = await self._offset(OffsetSpec.EARLIEST), await self._offset(OffsetSpec.LATEST)
        self._position = start
        self._following = asyncio.create_task(self._follow(start))
        reading = asyncio.ensure_future(self.wait_for(end - 1))
        await asyncio.wait((reading, self._following), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            reading.cancel()
            error = self._following.exception()
            raise error if error is not None else UnusableTopic("The topic cannot be read.")

    async def _offset(self, spec: OffsetSpec) -> int:
        partition = self._settings.partition
        found = (await list_offsets(self._questions, {partition: spec}))[partition]
        if isinstance(found, KafkaError):
            raise found
        return found.offset

    async def _follow(self, start: int) -> None:
        """Replay the records from `start` on, for ever."""
        options = ReadOptions(read_committed=False, patience_ms=_FOR_EVER_MS)
        reader = PartitionReader(
            self._cluster, OffsetRange(self._settings.partition, start, _NO_END), options
        )
        try:
            while (fetched := await reader.read()) is not None:
                self._replay_batches(fetched)
        except (CorruptRecords, CorruptBatch) as error:
            raise self._damaged(str(error)) from error

    def _replay_batches(self, fetched: FetchedBatches) -> None:
        position = self._position
        for at, header in visible_batches(fetched):
            if header.next_offset <= position:
                continue
            batch = fetched.data[at : at + header.size_in_bytes]
            for record in iter_records(batch, header):
                if record.offset < position:
                    continue
                self._replay_record(record.key or b"", record.value, record.offset, record.timestamp)
            position = header.next_offset
        self._advance(max(position, _end_of(fetched)))

    def _replay_record(self, key: bytes, value: bytes | None, offset: int, timestamp: int) -> None:
        try:
            self._replay(key, value, offset, timestamp)
        except DamagedRecord as error:
            if not self._settings.skip_damaged:
                raise self._damaged(f"the record at offset {offset} cannot be read: {error}") from None
            logger.error(
                "The record at offset %d is skipped: %s",
                offset,
                error,
                extra=event("registry.record_skipped", offset=offset),
            )

    def _written(self, written: Written) -> None:
        if written.base_offset != self._position:
            return
        for offset, (key, value) in enumerate(written.records, written.base_offset):
            self._replay_record(key, value, offset, written.timestamp)
        self._advance(written.base_offset + len(written.records))

    def _advance(self, position: int) -> None:
        self._position = max(position, self._position)
        while self._waiters and self._waiters[0][0] < self._position:
            _, _, waiter = heapq.heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)

    def _damaged(self, reason: str) -> UnusableTopic:
        return UnusableTopic(
            f"The topic {self._settings.topic} is damaged: {reason}. Restore the topic from a backup or an "
            "intact replica, or choose another one with kafkastore.topic. To continue without records that "
            "cannot be read, set kafkastore.skip.damaged.records=true."
        )

    async def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)


def _end_of(fetched: FetchedBatches) -> int:
    """Return the offset after the last batch, which may be a control batch."""
    return max((header.next_offset for _, header in iter_batches(fetched.data)), default=0)


def _ignore(key: bytes, value: bytes | None, offset: int, timestamp: int) -> None:
    """Ignore a record before the start."""
