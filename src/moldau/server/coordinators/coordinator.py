"""All shards of one coordinator: one for each partition of its topic that this node leads.

`apply` follows the metadata. A partition that this node starts to lead is replayed into a new shard; until
that is done, requests fail with COORDINATOR_LOAD_IN_PROGRESS. A partition that it stops leading is closed,
and pending requests fail with NOT_COORDINATOR. A hash of the group id, transactional id or share partition
key selects the partition.

A response waits until its records are committed, that is, replicated to every in-sync replica.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.java_hash import partition_for_name
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.compression import NONE
from moldau.protocol.stored.coordinator import CoordinatorTable
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.lead_partition import LeadPartition, Shard
from moldau.server.coordinators.partition_log import PartitionLog, replay_partition
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import Effect
from moldau.statemachine.runtime import CommitTimeout, Runtime
from moldau.statemachine.timers import Timers

#: Loads whose time is remembered.
_LOADS_KEPT: Final = 1000

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)
R = TypeVar("R")


class Coordinator(Generic[S]):
    def __init__(
        self,
        topic: str,
        table: CoordinatorTable,
        make_shard: Callable[[int, int, Timers], S],
        *,
        replicas: ReplicaManager,
        clock: Clock,
        pool: Pool,
        timeout_ms: Callable[[], int],
        codec: Callable[[], int] = lambda: NONE,
        on_effect: Callable[[Effect], None] | None = None,
        reloads_with_epoch: bool = False,
    ) -> None:
        """`make_shard` receives the partition index, its leader epoch and the shard's timers.

        `timeout_ms` limits how long a response waits for the commit. `reloads_with_epoch` loads a shard again
        with every new leader epoch, even if this node remains the leader.
        """
        self.topic = topic
        self._table = table
        self._make_shard = make_shard
        self._replicas = replicas
        self._clock = clock
        self._pool = pool
        self._codec = codec
        self._on_effect = on_effect
        self._reloads_with_epoch = reloads_with_epoch
        self._timeout = CommitTimeout(timeout_ms, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._image = MetadataImage.empty()
        self._lead_partitions: dict[int, LeadPartition[S]] = {}
        #: When partitions were loaded, and how long it took, in seconds.
        self._loads: deque[tuple[float, float]] = deque(maxlen=_LOADS_KEPT)

    # Requests.

    def partition_of(self, name: str) -> int:
        """Return the partition that coordinates a group, transactional id or share partition."""
        topic = self._image.topics.by_name.get(self.topic)
        if topic is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {self.topic} does not exist yet."
            )
        return partition_for_name(name, len(topic.partitions))

    def leader_of(self, name: str) -> int | None:
        """Return the broker that coordinates `name`, or None if its partition has no leader."""
        topic = self._image.topics.by_name.get(self.topic)
        if topic is None:
            return None
        leader = topic.partitions[partition_for_name(name, len(topic.partitions))].leader
        return leader if leader >= 0 else None

    async def write(self, name: str, decide: Callable[[S], Decision[Entry, R]]) -> R:
        """Run a decision of the shard that coordinates `name`; return its response once committed."""
        return await self.write_at(self._index_of(name), decide)

    async def write_at(self, index: int, decide: Callable[[S], Decision[Entry, R]]) -> R:
        """Run a decision of the shard of one partition."""
        shard, runtime = self._active(index)
        return await runtime.write(lambda: decide(shard))

    async def read(self, name: str, look: Callable[[S], R]) -> R:
        shard, runtime = self._active(self._index_of(name))
        return await runtime.read(lambda: look(shard))

    async def read_all(self, look: Callable[[S], R]) -> list[R]:
        """Read every shard of this node; COORDINATOR_LOAD_IN_PROGRESS while one of them is loading."""
        # Shards that failed to load are left out.
        active = [
            self._active(index) for index, lead in sorted(self._lead_partitions.items()) if not lead.failure
        ]
        results = []
        for shard, runtime in active:
            try:
                results.append(await runtime.read(lambda shard=shard: look(shard)))  # type: ignore[misc]
            except KafkaError as error:
                # So are shards that were closed since.
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return results

    def recent_loads(self, seconds: float) -> list[float]:
        """Return how long each partition took that was loaded in the last `seconds`."""
        since = self._clock.monotonic() - seconds
        return [took for ended, took in self._loads if ended >= since]

    def leads(self, index: int) -> bool:
        return index in self._lead_partitions

    def active_shard(self, index: int) -> S | None:
        """Return the shard of a partition if this node leads it and has loaded it."""
        lead = self._lead_partitions.get(index)
        return lead.shard if lead is not None and lead.runtime is not None else None

    def active_shards(self) -> Iterator[tuple[int, S]]:
        for index, lead in self._lead_partitions.items():
            if lead.shard is not None and lead.runtime is not None:
                yield index, lead.shard

    def count_by_state(self) -> dict[str, int]:
        """Return the number of partitions of this node that are loading, active or failed."""
        counts = {"loading": 0, "active": 0, "failed": 0}
        for lead in self._lead_partitions.values():
            counts["failed" if lead.failure else "loading" if lead.runtime is None else "active"] += 1
        return counts

    def _index_of(self, name: str) -> int:
        try:
            return self.partition_of(name)
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error

    def _active(self, index: int) -> tuple[S, Runtime[Entry]]:
        lead = self._lead_partitions.get(index)
        if lead is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if lead.failure is not None:
            raise KafkaError(lead.failure.code, lead.failure.message)
        if lead.runtime is None or lead.shard is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return lead.shard, lead.runtime

    # Metadata.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        topic = image.topics.by_name.get(self.topic)
        changed = delta.topics_changed.get(topic.id, ()) if topic is not None else ()
        existing = topic.partitions if topic is not None else {}
        for index in [each for each in self._lead_partitions if each not in existing]:
            self._resign(index)
        if topic is not None:
            for index in sorted(changed):
                self._follow(self._partition(topic.id, index), index)
        for _, shard in list(self.active_shards()):
            shard.image_changed(delta, image)

    def _partition(self, topic_id: Any, index: int) -> Partition | None:
        try:
            return self._replicas.by_id(topic_id, index)
        except KafkaError:
            return None

    def _follow(self, partition: Partition | None, index: int) -> None:
        lead = self._lead_partitions.get(index)
        leads = partition is not None and partition.is_leader
        if lead is not None and (not leads or lead.partition is not partition or self._must_reload(lead)):
            self._resign(index)
            lead = None
        if partition is None or not leads:
            return
        if lead is None:
            self._lead(index, partition)
        else:
            lead.leader_epoch = partition.leader_epoch

    def _must_reload(self, lead: LeadPartition[S]) -> bool:
        return lead.should_reload or (self._reloads_with_epoch and lead.has_new_epoch)

    def _lead(self, index: int, partition: Partition) -> None:
        lead: LeadPartition[S] = LeadPartition(partition)
        self._lead_partitions[index] = lead
        if partition.log is not None and partition.log.log_end_offset == partition.log.log_start_offset:
            self._start(lead, self._make_shard(index, lead.leader_epoch, lead.timers))
        else:
            lead.task = asyncio.create_task(self._load(index, lead))

    async def _load(self, index: int, lead: LeadPartition[S]) -> None:
        started = self._clock.monotonic()
        while True:
            source = lead.partition.log
            failure = await self._load_once(index, lead)
            if failure is None:
                break
            if lead.partition.log is source or lead.partition.log is None:
                lead.failure = failure
                return
            logger.info("%s-%d moved to another log directory and is loaded again", self.topic, index)
        now = self._clock.monotonic()
        self._loads.append((now, now - started))
        logger.info(
            "loaded %s-%d in %.3f s",
            self.topic,
            index,
            now - started,
            extra=event("coordinator.loaded", topic=self.topic, partition=index),
        )

    async def _load_once(self, index: int, lead: LeadPartition[S]) -> KafkaError | None:
        shard = self._make_shard(index, lead.leader_epoch, lead.timers)
        try:
            await replay_partition(lead.partition.leader_log(), self._table, self._pool, shard.replay)
            self._start(lead, shard)
        except KafkaError as error:
            self._replicas.storage_failed(error)
            logger.error("%s-%d could not be loaded: %s", self.topic, index, error)
            return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
        except Exception:
            logger.exception("%s-%d has records that cannot be replayed", self.topic, index)
            return KafkaError(ErrorCode.NOT_COORDINATOR)
        return None

    def _start(self, lead: LeadPartition[S], shard: S) -> None:
        partition_log = PartitionLog(lead.partition, self._clock, self._codec, self._replicas.storage_failed)
        committed = lead.partition.usable_log().high_watermark - 1
        lead.shard = shard
        lead.runtime = Runtime(partition_log, shard.replay, self._on_effect, committed, self._timeout)
        lead.partition.progress.high_watermark.add(lead.high_watermark_advanced)
        shard.activate(self._image)

    def _resign(self, index: int) -> None:
        logger.info(
            "resigned as the coordinator of %s-%d",
            self.topic,
            index,
            extra=event("coordinator.resigned", topic=self.topic, partition=index),
        )
        self._lead_partitions.pop(index).close()

    async def close(self) -> None:
        tasks = [lead.task for lead in self._lead_partitions.values() if lead.task is not None]
        for index in list(self._lead_partitions):
            self._lead_partitions.pop(index).close()
        await asyncio.gather(*tasks, return_exceptions=True)
