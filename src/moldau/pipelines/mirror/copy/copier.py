"""The loop that copies a set of partitions: fetch from each leader, prepare, write.

How it works. One coroutine per leader fetches all its partitions in one request and gives the prepared
batches to the sink, which makes it wait while the target is slower. `run` finds leaders and starts these
coroutines; partitions are added and removed at any time, and take part in the next request.

Invariants:

- Offsets are never skipped silently: records that retention deleted first are counted and logged, or stop
  the partition (`source.records.missing`).
- A topic that was deleted and created again, or truncated, is another topic: its partitions stop, or start
  again at its beginning (`source.topic.recreated`).
- A partition that fails does not stop the others; an error of the sink stops the copier.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.types import CorruptRecords
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import error_of
from moldau.pipelines.mirror.config.definitions import RESTART, STOP
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.copy.batches import PreparedBatch, prepared_batches
from moldau.pipelines.mirror.copy.fetch import FetchFrom, FetchOptions, fetch, fetched_batches
from moldau.pipelines.mirror.copy.partition import CopiedPartition
from moldau.pipelines.mirror.copy.sink import MirrorSink
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.messages.fetch import PartitionData
from moldau.protocol.messages.metadata import MetadataResponseTopic

logger = logging.getLogger(__name__)

_MAX_WAIT_MS = 500
_FETCH_BYTES = 16 << 20
_PARTITION_BYTES = 2 << 20
#: The share of the sink's buffer that one partition may fill: a partition without a leader on the target is
#: not fetched then, and holds no other. Meanwhile the fetches of the others wait for a short time only.
_SHARE = 4
_HURRIED_MS = 20
_HELD_S = 0.01
#: How often leaders that are unknown are looked up, and new partitions are noticed.
_LEADERS_S = 0.5


class Copier:
    def __init__(self, flow: Flow, source: Cluster, sink: MirrorSink) -> None:
        self.partitions: dict[TopicPartition, CopiedPartition] = {}
        self._flow = flow
        self._source = source
        self._sink = sink
        self._loops: dict[int, asyncio.Task[None]] = {}
        self._assigned = asyncio.Event()
        self._failures = 0
        properties = flow.source_properties
        self._options = FetchOptions(
            min(_MAX_WAIT_MS, flow["consumer.poll.timeout.ms"]),
            int(properties.get("fetch.max.bytes", _FETCH_BYTES)),
            int(properties.get("max.partition.fetch.bytes", _PARTITION_BYTES)),
            flow.read_committed,
        )
        self._share = sink.buffer_bytes // _SHARE
        self._hurried = replace(self._options, max_wait_ms=_HURRIED_MS)

    def add(self, partitions: Iterable[CopiedPartition]) -> None:
        for partition in partitions:
            self.partitions[partition.source] = partition
        self._assigned.set()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.partitions.pop(partition, None)

    async def run(self) -> None:
        """Copy until an error of the sink, or until cancelled."""
        try:
            while True:
                self._assigned.clear()
                if any(each.active and each.leader is None for each in self.partitions.values()):
                    await self._find_leaders()
                self._start_loops()
                await self._wait()
        finally:
            for loop in self._loops.values():
                loop.cancel()
            await asyncio.gather(*self._loops.values(), return_exceptions=True)
            self._loops.clear()

    def _start_loops(self) -> None:
        for node in {each.leader for each in self.partitions.values() if each.active} - {None}:
            if node is not None and node not in self._loops:
                self._loops[node] = asyncio.create_task(self._follow(node))

    async def _wait(self) -> None:
        """Wait for new partitions, for the end of a loop, or for the time of the next look-up."""
        assigned = asyncio.create_task(self._assigned.wait())
        waited = {assigned, *self._loops.values()}
        done, _ = await asyncio.wait(waited, timeout=_LEADERS_S, return_when=asyncio.FIRST_COMPLETED)
        assigned.cancel()
        for node, loop in list(self._loops.items()):
            if loop in done:
                del self._loops[node]
                loop.result()

    async def _follow(self, node: int) -> None:
        """Copy the partitions of a leader until it leads none of them."""
        while led := self._led_by(node):
            wanted = [each for each in led if each.progress.queued_bytes < self._share]
            if not wanted:
                await asyncio.sleep(_HELD_S)
                continue
            options = self._options if len(wanted) == len(led) else self._hurried
            begin = {each.source: FetchFrom(each.topic_id, each.progress.position) for each in wanted}
            try:
                answers = await fetch(self._source, node, begin, options)
            except KafkaError as error:
                self._lose_leaders(wanted, error)
                await asyncio.sleep(self._source.settings.backoff.seconds(self._failures))
                return
            self._failures = 0
            await self._copy([each for each in wanted if _unchanged(each, begin)], answers)

    def _led_by(self, node: int) -> list[CopiedPartition]:
        return [each for each in self.partitions.values() if each.leader == node and each.active]

    async def _copy(
        self, wanted: list[CopiedPartition], answers: dict[TopicPartition, PartitionData]
    ) -> None:
        if not answers:
            # The response to a throttled client is empty.
            await asyncio.sleep(self._source.settings.backoff.initial_seconds)
        batches: list[tuple[CopiedPartition, PreparedBatch]] = []
        for partition in wanted:
            found = answers.get(partition.source)
            if found is None:
                continue
            if found.error_code:
                await self._handle_error(partition, ErrorCode.of(found.error_code))
                continue
            try:
                prepared, next_offset = self._prepare(partition, found)
            except (CorruptRecords, CorruptBatch) as error:
                self._fail(partition, str(error))
                continue
            for batch in prepared:
                partition.progress.queue(batch.spans, batch.next_offset, len(batch.buffer))
            partition.progress.skip(next_offset)
            batches += [(partition, batch) for batch in prepared]
        if batches:
            await self._sink.write(batches)

    def _prepare(self, partition: CopiedPartition, found: PartitionData) -> tuple[list[PreparedBatch], int]:
        batches, next_offset = fetched_batches(partition.source, partition.progress.position, found)
        return list(prepared_batches(batches)), next_offset

    async def _handle_error(self, partition: CopiedPartition, code: ErrorCode) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._out_of_range(partition)
            return
        logger.info("%s: %s of %s; looking for its leader", self._flow, code.name, partition.source)
        partition.leader = None
        await asyncio.sleep(self._source.settings.backoff.initial_seconds)

    async def _out_of_range(self, partition: CopiedPartition) -> None:
        try:
            start, end = [await self._listed(partition.source, spec) for spec in _BOTH_ENDS]
        except KafkaError as error:
            self._lose_leaders([partition], error)
            return
        position = partition.progress.position
        if position < start:
            await self._retention_overtook(partition, start)
        elif position > end:
            reason = f"the source was truncated: its log ends at {end}, but {position} records were copied"
            await self._replaced(partition, partition.topic_id, end, reason)
        else:
            # A new leader learns the high watermark soon.
            partition.leader = None
            await asyncio.sleep(self._source.settings.backoff.initial_seconds)

    async def _retention_overtook(self, partition: CopiedPartition, start: int) -> None:
        position = partition.progress.position
        sentence = (
            f"{start - position} offsets ({position} to {start - 1}) of {partition.source} were deleted by "
            "retention before they were copied"
        )
        if self._flow["source.records.missing"] == STOP:
            self._fail(partition, f"{sentence}; set source.records.missing=continue to continue after them")
            return
        logger.warning("%s: %s; continuing after them", self._flow, sentence)
        partition.lost += start - position
        partition.progress.skip(start)

    async def _find_leaders(self) -> None:
        topics = {
            each.source.topic for each in self.partitions.values() if each.active and each.leader is None
        }
        try:
            answer = await self._source.metadata(topics)
        except KafkaError as error:
            self._failures += 1
            logger.warning("%s: the source cluster is not reachable: %s", self._flow, error)
            await asyncio.sleep(self._source.settings.backoff.seconds(self._failures))
            return
        for topic in answer.topics:
            if topic.error_code:
                logger.info("%s: topic %s: %s", self._flow, topic.name, error_of(topic.error_code))
            else:
                await self._take_leaders(topic)

    async def _take_leaders(self, topic: MetadataResponseTopic) -> None:
        for found in topic.partitions:
            partition = self.partitions.get(TopicPartition(topic.name or "", found.partition_index))
            if partition is None or not partition.active:
                continue
            if ZERO_UUID not in (partition.topic_id, topic.topic_id) and partition.topic_id != topic.topic_id:
                await self._replaced(
                    partition, topic.topic_id, None, "the topic was deleted and created again"
                )
            if partition.active and found.leader_id >= 0:
                partition.leader = found.leader_id

    async def _replaced(
        self, partition: CopiedPartition, topic_id: Uuid, position: int | None, reason: str
    ) -> None:
        """Stop, or start again: at the beginning (None), or where a truncated log ends."""
        if self._flow["source.topic.recreated"] != RESTART:
            remedy = "set source.topic.recreated=restart to copy the new records into the same target topic"
            self._fail(partition, f"{partition.source}: {reason}; {remedy}")
            return
        if position is None:
            position = await self._listed(partition.source, OffsetSpec.EARLIEST)
        await self._sink.drain()
        logger.warning("%s: %s: %s; copying from offset %d", self._flow, partition.source, reason, position)
        partition.restart(topic_id, position)

    async def _listed(self, partition: TopicPartition, spec: OffsetSpec) -> int:
        return checked(await list_offsets(self._source, {partition: spec}))[partition].offset

    def _lose_leaders(self, partitions: Iterable[CopiedPartition], error: KafkaError) -> None:
        self._failures += 1
        logger.warning("%s: cannot fetch from the source: %s", self._flow, error)
        for partition in partitions:
            partition.leader = None

    def _fail(self, partition: CopiedPartition, reason: str) -> None:
        partition.failure = reason
        logger.error("%s: %s is not copied any more: %s", self._flow, partition.source, reason)


def _unchanged(partition: CopiedPartition, begin: Mapping[TopicPartition, FetchFrom]) -> bool:
    """Return whether a response is still wanted: the partition may have moved to another leader or topic."""
    asked = begin[partition.source]
    return asked == (partition.topic_id, partition.progress.position)


_BOTH_ENDS = (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
