"""A copy task: finds its partitions, copies them, stores how far it is, and restarts after errors.

A task is complete in itself, so that it runs as a coroutine beside others or as one long-lived Spark task.
Everything it knows is in the target's topics: after a crash it continues where the stored offsets are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from moldau.base.backoff import Backoff
from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, format_uuid
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.types import RecordsRefused
from moldau.client.wire.cluster import Cluster, is_retriable
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.mirror.config.definitions import STOP
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.copy.assignment import Assigned, assigned_partitions, known_topics
from moldau.pipelines.mirror.copy.copier import Copier
from moldau.pipelines.mirror.copy.partition import CopiedPartition
from moldau.pipelines.mirror.copy.sink import MirrorSink
from moldau.pipelines.mirror.copy.stored import OffsetStore, SyncedOffsets, stored_offsets
from moldau.pipelines.mirror.records.source_offset import SourceOffset
from moldau.pipelines.mirror.translation.runs import OffsetRuns

logger = logging.getLogger(__name__)

_RESTART = Backoff(0.5, 30.0)
#: How soon to look again while topics of the target are being created.
_CREATED_S = 0.3
#: How long a look-up waits for leaders.
_PATIENCE_MS = 3000


class _Earlier(NamedTuple):
    """What earlier runs copied: the last source offsets, and where records are stored on the target."""

    offsets: dict[TopicPartition, SourceOffset]
    runs: OffsetRuns


class CopyTask:
    """Task number `task` of `tasks` of a flow."""

    def __init__(
        self, flow: Flow, task: int, tasks: int, clock: Clock, offsets: OffsetStore | None = None
    ) -> None:
        self._flow = flow
        self._offsets = offsets
        self._task, self._tasks = task, tasks
        self._clock = clock
        self._selection = TopicSelection(flow)
        self._refused: dict[TopicPartition, str] = {}
        #: Partitions without a leader, which were logged.
        self._reported: set[TopicPartition] = set()
        self._begun = False

    async def run(self) -> None:
        """Copy until cancelled; after an error, start again with a growing delay."""
        failures = 0
        while True:
            begin = self._clock.monotonic()
            try:
                await self._run_once()
            except RecordsRefused as error:
                if not is_retriable(error):
                    self._refuse(error)
                logger.error("%s: the target refused records: %s", self._flow, error)
            except KafkaError as error:
                logger.error("%s: copying stopped and starts again soon: %s", self._flow, error)
            failures = 1 if self._clock.monotonic() - begin > _RESTART.maximum_seconds else failures + 1
            await asyncio.sleep(_RESTART.seconds(failures))

    def _refuse(self, error: RecordsRefused) -> None:
        """Leave out a partition whose records the target does not accept; the others continue."""
        self._refused[error.partition] = str(error)

    async def _run_once(self) -> None:
        flow = self._flow
        source = Cluster(_impatient(flow.source_settings("copy")))
        target = Cluster(flow.target_settings("discovery"))
        fetching = Cluster(flow.source_settings("fetch"))
        sink = MirrorSink(flow, self._task, self._clock, self._offsets)
        copier = Copier(flow, fetching, sink)
        try:
            await sink.start()
            earlier = await self._earlier(fetching, target)
            work = [self._assign(copier, source, target, earlier), copier.run(), self._flush(copier, sink)]
            await _first_failure(work)
        finally:
            await _quietly(sink, copier)
            for cluster in (source, target, fetching):
                cluster.close()

    async def _earlier(self, source: Cluster, target: Cluster) -> _Earlier:
        offsets = await self._stored(source, target)
        synced = SyncedOffsets(self._flow, source, target)
        if self._flow["emit.offset-syncs.enabled"]:
            await synced.read_new()
        return _Earlier(offsets, synced.runs)

    async def _stored(self, source: Cluster, target: Cluster) -> dict[TopicPartition, SourceOffset]:
        if self._offsets is None:
            return await stored_offsets(target, self._flow)
        found = known_topics((await source.retry(lambda: source.metadata(None))).topics)
        partitions = [
            TopicPartition(name, index)
            for name, topic in found.items()
            if self._selection.mirrors(name)
            for index in range(topic.partitions)
        ]
        return {each.partition: each for each in self._offsets.load(partitions)}

    async def _assign(
        self,
        copier: Copier,
        source: Cluster,
        target: Cluster,
        earlier: _Earlier,
    ) -> None:
        """Keep the copier's partitions up to date; it continues while a cluster is not reachable."""
        interval = self._flow["refresh.topics.interval.seconds"]
        failures = 0
        while True:
            try:
                missing = await self._assign_once(copier, source, target, earlier)
            except KafkaError as error:
                failures += 1
                logger.warning("%s: looking for partitions failed: %s", self._flow, error)
                await asyncio.sleep(min(interval, _RESTART.seconds(failures)))
                continue
            failures = 0
            self._begun = True
            if not missing and not self._flow["refresh.topics.enabled"]:
                await asyncio.Event().wait()
            await asyncio.sleep(min(interval, _CREATED_S) if missing else interval)

    async def _assign_once(
        self,
        copier: Copier,
        source: Cluster,
        target: Cluster,
        earlier: _Earlier,
    ) -> bool:
        found = known_topics((await source.retry(lambda: source.metadata(None))).topics)
        existing = known_topics((await target.retry(lambda: target.metadata(None))).topics)
        assigned, missing = assigned_partitions(self._selection, found, existing, self._task, self._tasks)
        gone = set(copier.partitions) - {each.source for each in assigned}
        if gone:
            logger.info("%s: %d partitions were deleted", self._flow, len(gone))
            # A topic of the same name that is created later is recognised by its id.
            earlier.offsets.update({where: copier.partitions[where].last_offset for where in gone})
            copier.remove(gone)
        for partition in copier.partitions.values():
            # The copier compares topic ids only when it looks for a leader.
            if found[partition.source.topic].topic_id not in (partition.topic_id, ZERO_UUID):
                partition.leader = None
        new = [each for each in assigned if each.source not in copier.partitions]
        known = [each for each in new if earlier.offsets.get(each.source, _NONE).offset >= 0]
        self._add(copier, [(each, earlier.offsets[each.source].offset + 1) for each in known], earlier)
        unknown = [each for each in new if each.source not in copier.partitions]
        starts = await self._starts(source, [each.source for each in unknown])
        begun = [(each, starts[each.source]) for each in unknown if each.source in starts]
        self._add(copier, begun, earlier)
        return missing or len(begun) < len(unknown)

    async def _starts(self, source: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions begin, without those that have no leader now."""
        at_end = self._flow.starts_at_end and not self._begun
        spec = OffsetSpec.LATEST if at_end else OffsetSpec.EARLIEST
        starts = {}
        for partition, listed in (await list_offsets(source, dict.fromkeys(partitions, spec))).items():
            if not isinstance(listed, KafkaError):
                starts[partition] = listed.offset
            elif partition not in self._reported:
                self._reported.add(partition)
                logger.warning("%s: %s cannot be copied yet: %s", self._flow, partition, listed)
        return starts

    def _add(self, copier: Copier, new: list[tuple[Assigned, int]], earlier: _Earlier) -> None:
        """Give the copier partitions with the offsets to continue at."""
        partitions = []
        for each, position in new:
            partition = CopiedPartition(each.source, each.target, each.topic_id, position)
            known = earlier.runs.of(each.source)
            partition.syncs.resume(None if known is None else known.last)
            self._check_topic_id(partition, earlier.offsets.pop(each.source, _NONE))
            partition.failure = partition.failure or self._refused.get(each.target)
            partitions.append(partition)
        if partitions:
            copier.add(partitions)
            logger.info("%s: copying %d new partitions", self._flow, len(partitions))

    def _check_topic_id(self, partition: CopiedPartition, stored: SourceOffset) -> None:
        """Stop or restart a partition whose topic was created again while no task was running."""
        if not stored.topic_id or stored.topic_id == format_uuid(partition.topic_id):
            return
        sentence = f"{partition.source}: the topic was deleted and created again while it was not mirrored"
        if self._flow["source.topic.recreated"] == STOP:
            partition.failure = f"{sentence}; set source.topic.recreated=restart to copy the new records"
            logger.error("%s: %s", self._flow, partition.failure)
        else:
            logger.warning("%s: %s; copying from its beginning", self._flow, sentence)
            partition.restart(partition.topic_id, 0)

    async def _flush(self, copier: Copier, sink: MirrorSink) -> None:
        exactly_once = self._flow.exactly_once
        name = "transaction.boundary.interval.ms" if exactly_once else "offset.flush.interval.ms"
        while True:
            await asyncio.sleep(self._flow[name] / 1000)
            await sink.flush([each for each in copier.partitions.values() if each.active])


def _impatient(settings: ClientSettings) -> ClientSettings:
    """Return settings for requests that are repeated anyway, so that no partition waits for another."""
    return replace(settings, api_timeout_ms=min(settings.api_timeout_ms, _PATIENCE_MS))


async def _first_failure(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines until one fails, and end the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _quietly(sink: MirrorSink, copier: Copier) -> None:
    """Store what is acknowledged, if the target can be reached, and close."""
    try:
        async with asyncio.timeout(2):
            await sink.flush([each for each in copier.partitions.values() if each.active])
    except (KafkaError, TimeoutError) as error:
        logger.warning("Offsets could not be stored before closing: %s", error)
    finally:
        await sink.close()


_NONE = SourceOffset(TopicPartition("", 0), -1)
