"""All shards of one coordinator: one for each partition of its topic that this node leads.

`apply` follows the metadata: a partition this node begins to lead is replayed into a new shard, and meanwhile
its clients hear COORDINATOR_LOAD_IN_PROGRESS; a partition it no longer leads is dropped with everything that
waits there, which hears NOT_COORDINATOR. Who belongs to which partition follows from a hash of the name.

An answer waits until what it says is committed, that is, on every in-sync replica.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.java_hash import partition_for_name
from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.compression import NONE
from moldau.protocol.stored.coordinator import CoordinatorTable
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.lead_partition import Led
from moldau.server.coordinators.partition_log import PartitionLog, replay_partition
from moldau.server.coordinators.shard import Shard
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.runtime import Patience, Runtime
from moldau.statemachine.timers import Timers

log = logging.getLogger(__name__)

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
        on_effect: Callable[[Any], None] | None = None,
        reloads_with_epoch: bool = False,
    ) -> None:
        """`make_shard` gets the partition's number, its leader epoch and the shard's timers.

        `timeout_ms`: how long an answer waits for the commit. `reloads_with_epoch`: a shard is made anew when
        the partition has a new leader epoch, even if this node has led it before.
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
        self._patience = Patience(timeout_ms, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._image = MetadataImage.empty()
        self._led: dict[int, Led[S]] = {}

    # What handlers ask.

    def partition_of(self, name: str) -> int:
        """The partition that a group, or a transactional id, belongs to."""
        topic = self._image.topics.by_name.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} does not exist yet")
        return partition_for_name(name, len(topic.partitions))

    def leader_of(self, name: str) -> int | None:
        """The broker that leads the partition `name` belongs to; None while there is none."""
        topic = self._image.topics.by_name.get(self.topic)
        if topic is None:
            return None
        leader = topic.partitions[partition_for_name(name, len(topic.partitions))].leader
        return leader if leader >= 0 else None

    async def write(self, name: str, decide: Callable[[S], Decision[Entry, R]]) -> R:
        """Let the shard that `name` belongs to decide; its answer, when that is committed."""
        return await self.write_at(self._home(name), decide)

    async def write_at(self, index: int, decide: Callable[[S], Decision[Entry, R]]) -> R:
        """Let the shard of one partition decide."""
        shard, runtime = self._active(index)
        return await runtime.write(lambda: decide(shard))

    async def read(self, name: str, look: Callable[[S], R]) -> R:
        shard, runtime = self._active(self._home(name))
        return await runtime.read(lambda: look(shard))

    async def read_all(self, look: Callable[[S], R]) -> list[R]:
        """What every shard that is led here has to say; COORDINATOR_LOAD_IN_PROGRESS while one is loading."""
        # One that could not be loaded has nothing to say, and the others are not to suffer for it.
        active = [self._active(index) for index in sorted(self._led) if self._led[index].failure is None]
        answers = []
        for shard, runtime in active:
            try:
                answers.append(await runtime.read(lambda shard=shard: look(shard)))  # type: ignore[misc]
            except KafkaError as error:
                # One that was given up meanwhile has nothing to say either.
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return answers

    def leads(self, index: int) -> bool:
        return index in self._led

    def active_shard(self, index: int) -> S | None:
        """Led here, and loaded."""
        led = self._led.get(index)
        return led.shard if led is not None and led.runtime is not None else None

    def active_shards(self) -> Iterator[tuple[int, S]]:
        for index, led in self._led.items():
            if led.shard is not None and led.runtime is not None:
                yield index, led.shard

    def _home(self, name: str) -> int:
        try:
            return self.partition_of(name)
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error

    def _active(self, index: int) -> tuple[S, Runtime[Entry]]:
        led = self._led.get(index)
        if led is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if led.failure is not None:
            raise KafkaError(led.failure.code, led.failure.message)
        if led.runtime is None or led.shard is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return led.shard, led.runtime

    # Following the metadata.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        topic = image.topics.by_name.get(self.topic)
        changed = delta.topics_changed.get(topic.id, ()) if topic is not None else ()
        existing = topic.partitions if topic is not None else {}
        for index in [each for each in self._led if each not in existing]:
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
        led = self._led.get(index)
        leads = partition is not None and partition.is_leader
        if led is not None and (not leads or led.partition is not partition or self._is_outdated(led)):
            self._resign(index)
            led = None
        if partition is None or not leads:
            return
        if led is None:
            self._lead(index, partition)
        else:
            led.leader_epoch = partition.leader_epoch

    def _is_outdated(self, led: Led[S]) -> bool:
        return led.is_lost or (self._reloads_with_epoch and led.has_new_epoch)

    def _lead(self, index: int, partition: Partition) -> None:
        led: Led[S] = Led(partition)
        self._led[index] = led
        if partition.log is not None and partition.log.log_end_offset == partition.log.log_start_offset:
            self._begin(led, self._make_shard(index, led.leader_epoch, led.timers))
        else:
            led.task = asyncio.create_task(self._load(index, led))

    async def _load(self, index: int, led: Led[S]) -> None:
        started = self._clock.monotonic()
        while True:
            source = led.partition.log
            failure = await self._try_to_load(index, led)
            if failure is None:
                break
            if led.partition.log is source or led.partition.log is None:
                led.failure = failure
                return
            log.info("%s-%d has moved to another directory and is loaded again", self.topic, index)
        log.info("loaded %s-%d in %.3f s", self.topic, index, self._clock.monotonic() - started)

    async def _try_to_load(self, index: int, led: Led[S]) -> KafkaError | None:
        shard = self._make_shard(index, led.leader_epoch, led.timers)
        try:
            await replay_partition(led.partition.leader_log(), self._table, self._pool, shard.replay)
            self._begin(led, shard)
        except KafkaError as error:
            self._replicas.storage_failed(error)
            log.error("%s-%d cannot be loaded: %s", self.topic, index, error)
            return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
        except Exception:
            log.exception("%s-%d holds what cannot be replayed", self.topic, index)
            return KafkaError(ErrorCode.NOT_COORDINATOR)
        return None

    def _begin(self, led: Led[S], shard: S) -> None:
        partition_log = PartitionLog(led.partition, self._clock, self._codec, self._replicas.storage_failed)
        committed = led.partition.usable_log().high_watermark - 1
        led.shard = shard
        led.runtime = Runtime(partition_log, shard.replay, self._on_effect, committed, self._patience)
        led.partition.add_waiter(led.progressed)
        shard.activate(self._image)

    def _resign(self, index: int) -> None:
        log.info("no longer the coordinator of %s-%d", self.topic, index)
        self._led.pop(index).close()

    async def close(self) -> None:
        tasks = [led.task for led in self._led.values() if led.task is not None]
        for index in list(self._led):
            self._led.pop(index).close()
        await asyncio.gather(*tasks, return_exceptions=True)
