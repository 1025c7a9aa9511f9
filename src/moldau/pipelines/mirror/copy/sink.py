"""Writing copied batches, source offsets and offset syncs: at least once, or exactly once.

At least once, records are acknowledged before their source offset is stored, so a crash repeats at most the
records of one flush interval. Exactly once, records and source offsets are written in one transaction; the
transactional id is that of MirrorMaker 2, so an earlier instance is fenced.

Offset syncs are written after the records they name are acknowledged (or committed), never before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from moldau.base.clock import Clock
from moldau.base.ids import TopicPartition
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.copy.batches import PreparedBatch
from moldau.pipelines.mirror.copy.partition import CopiedPartition
from moldau.pipelines.mirror.copy.stored import OffsetStore
from moldau.pipelines.mirror.records.source_offset import CONNECTOR, SourceOffset
from moldau.pipelines.mirror.topic_log import NewRecord, TopicAppender
from moldau.pipelines.mirror.translation.runs import Run

_OnStored = Callable[[TopicPartition, int, int], None]
Batches = Sequence[tuple[CopiedPartition, PreparedBatch]]

_MIB = 1 << 20


class MirrorSink:
    """The producers of one copy task."""

    def __init__(self, flow: Flow, task: int, clock: Clock, offsets: OffsetStore | None = None) -> None:
        """Store source offsets in `offsets`, or in the flow's topic."""
        self.buffer_bytes = _buffer_bytes(flow)
        self._offsets = offsets
        self._flow = flow
        self._clock = clock
        transactional_id = f"{flow.source}-mm2-{CONNECTOR}-{task}" if flow.exactly_once else None
        self._records = _writer(flow, "copy", transactional_id, self._on_stored)
        self._state = self._records if flow.exactly_once else _writer(flow, "offsets")
        self._syncs: AsyncBatchWriter | None = None
        if flow["emit.offset-syncs.enabled"]:
            settings = (flow.source_settings if flow.syncs_on_source else flow.target_settings)(
                "offset-syncs"
            )
            self._syncs = AsyncBatchWriter(settings)
        self._by_target: dict[TopicPartition, CopiedPartition] = {}
        self._uncommitted: list[tuple[CopiedPartition, Run]] = []
        self._transaction = asyncio.Lock()
        self._open = False
        self.records = 0
        self.bytes = 0

    async def start(self) -> None:
        """End the transaction of an earlier instance; its offsets are final afterwards."""
        if self._flow.exactly_once:
            await self._records.init_transactions()

    async def write(self, batches: Batches) -> None:
        """Queue batches, which their progress has, too; wait while too many bytes are queued."""
        async with self._transaction:
            if self._flow.exactly_once and not self._open and batches:
                self._records.begin()
                self._open = True
            for partition, batch in batches:
                self._by_target[partition.target] = partition
                self.records += sum(length for _, length in batch.spans)
                self.bytes += len(batch.buffer)
            await self._records.write((each.target, batch.buffer) for each, batch in batches)

    async def drain(self) -> None:
        """Wait until all queued batches are acknowledged."""
        await self._records.flush()

    async def flush(self, partitions: Iterable[CopiedPartition]) -> None:
        """Store source offsets and offset syncs of what is copied; end the transaction."""
        chosen = list(partitions)
        if self._flow.exactly_once:
            await self._commit(chosen)
        else:
            await self._store_offsets({each: each.progress.copied for each in chosen})
            await self._state.flush()
        await self._store_syncs(chosen)

    async def close(self) -> None:
        writers = {self._records, self._state, *([] if self._syncs is None else [self._syncs])}
        for writer in writers:
            await writer.close()

    async def _commit(self, partitions: Sequence[CopiedPartition]) -> None:
        async with self._transaction:
            await self._records.flush()
            moved = {each: each.progress.copied for each in partitions}
            if not self._open and not any(each.committed < at for each, at in moved.items()):
                return
            if not self._open:
                self._records.begin()
            self._open = True
            await self._store_offsets(moved)
            await self._records.commit()
            self._open = False
            for partition, run in self._uncommitted:
                partition.syncs.stored(run)
            self._uncommitted.clear()

    async def _store_offsets(self, positions: Mapping[CopiedPartition, int]) -> None:
        moved = {each: at for each, at in positions.items() if at > each.committed and at > 0}
        found = [each.source_offset(at) for each, at in moved.items()]
        if self._offsets is not None and found:
            self._offsets.store(found)
        elif found:
            records = [self._record(each) for each in found]
            appender = TopicAppender(self._state)
            await appender.append(self._flow.offsets_topic, records, self._clock.time_ms())
        for partition, position in moved.items():
            partition.committed = position

    def _record(self, offset: SourceOffset) -> NewRecord:
        return NewRecord(offset.key(self._flow.source), offset.value())

    async def _store_syncs(self, partitions: Sequence[CopiedPartition]) -> None:
        if self._syncs is None:
            return
        syncs = [sync for partition in partitions for sync in partition.syncs.take()]
        if syncs:
            records = [NewRecord(sync.key(), sync.value(), sync.headers()) for sync in syncs]
            appender = TopicAppender(self._syncs)
            await appender.append(self._flow.offset_syncs_topic, records, self._clock.time_ms())
            await self._syncs.flush()

    def _on_stored(self, target: TopicPartition, base_offset: int, records: int) -> None:
        partition = self._by_target.get(target)
        if partition is None:
            return
        for run in partition.progress.stored(base_offset, records):
            if self._flow.exactly_once:
                self._uncommitted.append((partition, run))
            else:
                partition.syncs.stored(run)


def _buffer_bytes(flow: Flow) -> int:
    """Return how many bytes of batches may be queued for the target."""
    return max(int(flow.target_properties.get("buffer.memory", 32 * _MIB)), _MIB)


def _writer(
    flow: Flow, role: str, transactional_id: str | None = None, on_stored: _OnStored | None = None
) -> AsyncBatchWriter:
    properties = flow.target_properties
    return AsyncBatchWriter(
        flow.target_settings(role),
        transactional_id=transactional_id,
        transaction_timeout_ms=int(properties.get("transaction.timeout.ms", 60_000)),
        delivery_timeout_ms=int(properties.get("delivery.timeout.ms", 120_000)),
        max_request_bytes=max(int(properties.get("max.request.size", 8 * _MIB)), _MIB),
        max_pending_bytes=_buffer_bytes(flow),
        on_stored=on_stored,
    )
