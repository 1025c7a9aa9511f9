"""A log in a topic: replayed to its end when that is asked for, and followed if changes have to be noticed.

Only committed records are replayed, each once and in the order of its partition. Statuses and offsets are
read on demand, which costs one request if nothing is new; configurations are followed, because every worker
reacts to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from moldau.base.clock import Clock
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.reader import (
    FetchedBatches,
    OffsetRange,
    PartitionReader,
    ReadOptions,
    read_batches_async,
    visible_batches,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.connect.config.worker import StorageTopic
from moldau.pipelines.connect.storage.log import Replay
from moldau.pipelines.connect.storage.topics.creation import ensure_topic
from moldau.pipelines.connect.storage.topics.writer import TopicWriter
from moldau.pipelines.connect.storage.types import Record
from moldau.protocol.records import iter_batches, iter_records

logger = logging.getLogger(__name__)

_NO_END: Final = 1 << 62
_FOR_EVER_MS: Final = 1 << 53
_FLUSH_TIMEOUT_S: Final = 5.0
_LAST_FLUSH_S: Final = 2.0


class TopicLog:
    """`follows`: read new records as they arrive, from a topic of one partition."""

    def __init__(
        self, client: ClientSettings, topic: StorageTopic, clock: Clock, *, follows: bool = False
    ) -> None:
        self._cluster = Cluster(client)
        #: A fetch that waits for records delays all further requests of its connection.
        self._following_cluster = Cluster(client)
        self._topic = topic
        self._follows = follows
        self.writer = TopicWriter(client, topic.name, clock)
        self._replay: Replay = _ignore
        self._positions: dict[TopicPartition, int] = {}
        self._reading: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self, replay: Replay) -> None:
        self._replay = replay
        count = await ensure_topic(self._cluster, self._topic, most_partitions=1 if self._follows else None)
        partitions = [TopicPartition(self._topic.name, index) for index in range(count)]
        starts = await list_offsets(self._cluster, dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        self._positions = {each: found.offset for each, found in checked(starts).items()}
        await self.read_to_end()
        if self._follows:
            self._following = asyncio.create_task(self._follow(partitions[0]))

    async def append(self, records: Sequence[Record]) -> None:
        await self.writer.write(records)
        await self.read_to_end()

    def append_soon(self, records: Sequence[Record]) -> None:
        self.writer.write_soon(records)

    async def read_to_end(self) -> None:
        try:
            await asyncio.wait_for(self.writer.flush(), _FLUSH_TIMEOUT_S)
        except TimeoutError:
            logger.warning("The topic %s has not been written for a while", self._topic.name)
        # A read that has begun may not see records written meanwhile, so wait for it and read again.
        while self._reading is not None:
            await asyncio.wait([self._reading])
        reading = self._reading = asyncio.create_task(self._read())
        try:
            await reading
        finally:
            if self._reading is reading:
                self._reading = None

    async def failed(self) -> str:
        """Wait until the topic cannot be followed any more, and return the reason."""
        while self._following is None:
            await asyncio.sleep(0.1)
        await asyncio.wait([self._following])
        reason = "stopped" if self._following.cancelled() else self._following.exception()
        return f"The topic {self._topic.name} cannot be read: {reason}"

    async def close(self) -> None:
        for task in (self._following, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.writer.flush(), _LAST_FLUSH_S)
        await self.writer.close()
        self._cluster.close()
        self._following_cluster.close()

    async def _read(self) -> None:
        ends = checked(
            await list_offsets(
                self._cluster, dict.fromkeys(self._positions, OffsetSpec.LATEST), read_committed=True
            )
        )
        for partition, end in ends.items():
            start = self._positions[partition]
            if start < end.offset:
                wanted = OffsetRange(partition, start, end.offset)
                options = ReadOptions(skip_missing=True)
                async for fetched in read_batches_async(self._cluster, wanted, options):
                    self._replay_batches(fetched)
                self._positions[partition] = max(self._positions[partition], end.offset)

    async def _follow(self, partition: TopicPartition) -> None:
        options = ReadOptions(patience_ms=_FOR_EVER_MS, skip_missing=True)
        wanted = OffsetRange(partition, self._positions[partition], _NO_END)
        reader = PartitionReader(self._following_cluster, wanted, options)
        while (fetched := await reader.read()) is not None:
            self._replay_batches(fetched)

    def _replay_batches(self, fetched: FetchedBatches) -> None:
        """Replay the records after the position; the reader and the follower may bring the same ones."""
        partition = fetched.partition
        for at, header in visible_batches(fetched):
            position = self._positions[partition]
            if header.next_offset <= position:
                continue
            batch = fetched.data[at : at + header.size_in_bytes]
            for record in iter_records(batch, header):
                if record.offset >= position:
                    self._positions[partition] = record.offset + 1
                    self._replay(record.key or b"", record.value, record.offset)
        end = max((header.next_offset for _, header in iter_batches(fetched.data)), default=0)
        self._positions[partition] = max(self._positions[partition], end)


def _ignore(key: bytes, value: bytes | None, offset: int) -> None:
    """Ignore a record before the start."""
