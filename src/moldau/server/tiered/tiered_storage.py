"""Tiered storage of a broker: its wiring, and the periodic work on every tiered partition.

Once per `remote.log.manager.task.interval.ms`, a leader copies and expires segments, and a follower learns
how far the remote tier has got, so that both delete locally only what is confirmed there. The leader of a
partition of the metadata topic deletes the segments of topics that no longer exist, or are no longer tiered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.base.json_log import event
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.high_watermarks import LeaderHighWatermarks
from moldau.server.services import NodeServices
from moldau.server.tiered.copy_task import CopyTask
from moldau.server.tiered.deletion import RemoteDeletion
from moldau.server.tiered.expiration_task import ExpirationTask
from moldau.server.tiered.follower_state import FollowerState
from moldau.server.tiered.leader_state import LeaderState
from moldau.server.tiered.leftovers import Leftovers
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.metadata_topic import NAME, MetadataTopic
from moldau.server.tiered.orphans import Orphans
from moldau.server.tiered.partitions import Attempts, TieredPartition
from moldau.server.tiered.quota import RemoteQuota
from moldau.server.tiered.reads import RemoteReads
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.store import StoreCalls
from moldau.tiered.reading.index_cache import FOLDER
from moldau.tiered.state.copying import highest_remote_offset
from moldau.tiered.state.segments import PartitionId, RemoteSegment
from moldau.tiered.stores.interface import RemoteStore, RemoteStoreError

logger = logging.getLogger(__name__)

_NEVER_TIERED = frozenset({NAME, "__consumer_offsets", "__transaction_state", "__share_group_state"})


class TieredStorage:
    def __init__(
        self,
        services: NodeServices,
        replicas: ReplicaManager,
        high_watermarks: LeaderHighWatermarks,
        store: RemoteStore,
    ) -> None:
        self._services = services
        self._replicas = replicas
        clock = services.clock
        settings = TieredSettings(lambda: services.settings.config)
        self.settings = settings
        self.fetch_quota = RemoteQuota(
            clock,
            settings.fetch_windows(),
            lambda: settings.integer("remote.log.manager.fetch.max.bytes.per.second"),
        )
        self.store = StoreCalls(
            store,
            settings,
            services.pool.separate,
            services.disk,
            f"{services.settings.config.log_dirs[0]}/{FOLDER}",
            self._fetched,
        )
        self._loop = asyncio.get_running_loop()
        topic = MetadataTopic(services, replicas, high_watermarks, settings)
        self.metadata = RemoteLogMetadata(topic, settings, clock, services.id)
        self.reads = RemoteReads(self.metadata, self.store, settings, self.fetch_quota, clock)
        self.follower_state = FollowerState(self.metadata, self.store)
        state, deletion = LeaderState(self.metadata), RemoteDeletion(self.metadata, self.store)
        self.copy_task = CopyTask(services, self.metadata, self.store, settings, state, deletion)
        self.expiration_task = ExpirationTask(clock, settings, state, deletion, self.copy_task.in_progress)
        self._leftovers = Leftovers(services, self.metadata, deletion)
        self.orphans = Orphans(self.metadata, self.store, settings, clock)
        self._partitions: dict[tuple[TopicId, int], TieredPartition] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._due = asyncio.Event()

    def start(self) -> None:
        self._ticker = asyncio.create_task(self._tick())

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow the partitions that are tiered now; after the replicas."""
        for topic_id in delta.topics_deleted:
            self._leftovers.deleted(topic_id)
        tiered: dict[tuple[TopicId, int], TieredPartition] = {}
        for partition in self._replicas:
            if not _is_tiered(partition):
                continue
            key = (partition.topic_id, partition.topic_partition.partition)
            known = self._partitions.get(key)
            if known is None or known.partition is not partition:
                topic, index = partition.topic_partition
                known = TieredPartition(PartitionId(topic, partition.topic_id, index), partition)
            tiered[key] = known
        for key, former in self._partitions.items():
            if key not in tiered:
                _forget_remote(former.partition)
        gone = set(self._partitions) - set(tiered)
        added = set(tiered) - set(self._partitions)
        self._partitions = tiered
        self.metadata.want(each.id for each in tiered.values())
        self.store.traffic.keep({each.id.topic for each in tiered.values()})
        if gone or added or delta.topics_changed or delta.topics_deleted or delta.topic_configs_changed():
            self._due.set()

    def apply_settings(self) -> None:
        self.store.apply_settings()

    @property
    def partitions(self) -> list[TieredPartition]:
        return list(self._partitions.values())

    async def close(self) -> None:
        tasks = [*self._tasks] if self._ticker is None else [*self._tasks, self._ticker]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.reads.close()
        await self.follower_state.close()
        await self.metadata.close()
        await self.store.close()

    def _fetched(self, segment: RemoteSegment, size: int) -> None:
        """Count bytes read from the store; called in a thread."""
        self._loop.call_soon_threadsafe(self._count, segment.partition_id.topic, size)

    def _count(self, topic: str, size: int) -> None:
        self.fetch_quota.record(size)
        self.store.traffic.of(topic).fetch_bytes += size

    # Periodic work.

    async def _tick(self) -> None:
        while True:
            self._due.clear()
            try:
                await self._run_due()
            except Exception:
                logger.exception(
                    "tiered storage failed; it continues at its next interval", extra=event("tiered.failed")
                )
            interval_ms = self.settings.integer("remote.log.manager.task.interval.ms")
            try:
                async with asyncio.timeout(interval_ms / 1000):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _run_due(self) -> None:
        if self._partitions:
            await self.metadata.topic.ensure()
        await self.metadata.refresh()
        for tiered in self._partitions.values():
            if tiered.partition.log is None:
                continue
            if tiered.is_led:
                self._start(tiered, tiered.copies, self.copy_task.run)
                self._start(tiered, tiered.expirations, self.expiration_task.run)
            else:
                self._start(tiered, tiered.follows, self._follow)
        self._leftovers.start(self._tasks)
        self.orphans.start(self._tasks)

    def _start(
        self,
        tiered: TieredPartition,
        attempts: Attempts,
        run: Callable[[TieredPartition], Coroutine[Any, Any, None]],
    ) -> None:
        """Start a task of a partition if it is due."""
        if attempts.is_due(self._services.clock.monotonic()):
            attempts.is_running = True
            task = asyncio.create_task(self._attempt(tiered, attempts, run))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attempt(
        self,
        tiered: TieredPartition,
        attempts: Attempts,
        run: Callable[[TieredPartition], Coroutine[Any, Any, None]],
    ) -> None:
        try:
            await run(tiered)
            attempts.succeeded()
        except (KafkaError, RemoteStoreError, OSError) as error:
            attempts.failed(tiered.id, error, self._services.clock)
        finally:
            attempts.is_running = False

    async def _follow(self, tiered: TieredPartition) -> None:
        """Let a follower delete locally what its leader has copied."""
        if not tiered.is_synchronized:
            # Before tiered storage was disabled and enabled again, the remote tier may have had more.
            await self.metadata.synchronize(tiered.id)
            tiered.is_synchronized = True
        log, remote = tiered.partition.log, self.metadata.log(tiered.id)
        if log is not None and remote is not None:
            log.highest_remote_offset = highest_remote_offset(log, remote)
            tiered.show(remote)


def _is_tiered(partition: Partition) -> bool:
    log = partition.log
    return log is not None and log.config.tiered and partition.topic_partition.topic not in _NEVER_TIERED


def _forget_remote(partition: Partition) -> None:
    """Start the log with its first local record: tiered storage was disabled for the topic."""
    log = partition.log
    if log is not None and not log.config.tiered and partition.current is not None:
        log.highest_remote_offset = -1
        start = log.local_log_start_offset
        if log.log_start_offset < start <= log.high_watermark:
            log.delete_records_before(start)
