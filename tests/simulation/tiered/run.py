"""The simulation of tiered storage from a seed: brokers and the object store fail at the same time.

Invariants, by name:

- *readable*: every acknowledged record from the log start on is read back, from whichever tier
- *confirmed before deleted*: what no longer is on a broker's disk is complete in the store
- *no orphans*: when the store works again, one cleanup cycle later it has exactly the segments that the
  metadata name, and nothing after the topic is deleted

Records are deleted meanwhile. At the end, tiered storage is disabled and enabled again: what the local disks
still have must be copied again before it is deleted there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.offsets import EARLIEST
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.replication.partition import Partition
from moldau.server.tiered.orphans import INTERVALS
from moldau.server.tiered.tiered_storage import TieredStorage
from moldau.testing.simulation.cluster import SimulatedCluster, combined
from moldau.testing.simulation.store import StoreFaults, StoreService, store_config
from moldau.testing.simulation.world import Simulation
from moldau.tiered.state.copying import candidates
from moldau.tiered.state.segments import SegmentState
from tests.simulation.cluster.client import ClusterClient, check
from tests.simulation.cluster.consumers import Reader
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.history import History
from tests.simulation.cluster.invariants import Invariants
from tests.simulation.cluster.producers import Producer

_OLD = TopicPartition("old", 0)
_INTERVAL_MS = 200
#: A cleanup cycle: two sweeps of the store, and the grace period of interrupted copies.
_CYCLE_SECONDS = 2 * INTERVALS * _INTERVAL_MS / 1000 + 15
_LOOK_SECONDS = 0.1
_START_SECONDS = 60.0
_HEALED_SECONDS = 180.0
#: So many that the log has closed segments, whatever happened before.
_LAST_BATCHES = 20
_DELETE_RECORDS = 0.2
#: As much as a few segments.
_LOCAL_BYTES = 1500
_TOPIC, _SET = 2, 0
_KINDS = ("kill", "kill the controller", "power", "stop", "cut", "isolate", "reset", "elect", "slow disk")
_STORE_FAULTS = (
    StoreFaults(),
    StoreFaults(failing=1.0),
    StoreFaults(failing=0.3, lost=0.2, late=0.2, partial=0.3),
    StoreFaults(lost=0.4, stale=0.5),
    StoreFaults(late=0.5, stale=0.5),
    StoreFaults(damaged=0.5),
)


class TieredRun:
    def __init__(self, simulation: Simulation, *, steps: int = 8, interrupted: int | None = None) -> None:
        """`interrupted`: the only fault ends the leader at this step of its copies and deletions."""
        self.simulation = simulation
        self.random = simulation.random("life")
        self.history = History()
        self.service = StoreService(simulation.random("store"), simulation.loop)
        self.retention_bytes = self.random.choice((-1, -1, 4000))
        self._steps = steps if interrupted is None else 0
        self._interrupted = interrupted
        self._interrupted_at = -1 if interrupted is None else interrupted
        if interrupted is not None:
            self.retention_bytes = 4000
            self.service.on_step = self._step
        self._steps_done = 0
        self._administration = simulation.random("administration")
        #: The highest offset before which records were deleted, and whether the topic is not tiered now.
        self._deleted_before = 0
        self._disabled = False
        self.cluster = SimulatedCluster(simulation, combined(3), self._config())
        self.invariants = Invariants(self.cluster)
        self._brokers = {node_id: f"node{node_id}" for node_id in self.cluster.broker_ids}
        targets = [_OLD, TopicPartition("__remote_log_metadata", 0)]
        self.faults = Faults(self.cluster, self._client("operator"), self.random, targets, _KINDS)
        #: The highest log start offset that any replica had.
        self._log_start = 0

    def _config(self) -> dict[str, str]:
        return {
            **store_config("tier"),
            "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
            "remote.log.manager.task.interval.ms": str(_INTERVAL_MS),
            "log.retention.check.interval.ms": "300",
            "log.initial.task.delay.ms": "100",
            "log.segment.delete.delay.ms": "100",
            "log.dirs": "/data/a",
            "broker.session.timeout.ms": "6000",
            "replica.lag.time.max.ms": "5000",
            "min.insync.replicas": "2",
            "default.replication.factor": "3",
        }

    def _client(self, name: str) -> ClusterClient:
        return ClusterClient(self._brokers, self.simulation.random(f"client/{name}"))

    async def run(self) -> None:
        with self.service.registered("tier"):
            self.cluster.format()
            await self.cluster.start(_START_SECONDS)
            await self._create()
            producers = [
                Producer(name, self._client(name), self.history, self.simulation.random(name), [_OLD])
                for name in ("a", "b")
            ]
            tasks = [asyncio.create_task(producer.run()) for producer in producers]
            tasks += [asyncio.create_task(self._read_always()), asyncio.create_task(self._watch())]
            for _ in range(self._steps):
                self.service.faults = self.random.choice(_STORE_FAULTS)
                await self.faults.happen()
                if self._administration.random() < _DELETE_RECORDS:
                    await self._delete_records()
                await self._pass_time(self.random.choice((0.5, 1.5, 4.0)), tasks)
            if self._interrupted is not None:
                await self._reach("the leader is interrupted", lambda: bool(self.faults.happened), tasks)
            await self.faults.end()
            self.service.faults = StoreFaults()
            for _ in range(_LAST_BATCHES):
                await producers[0].send()
            await self._pass_time(2.0, tasks)
            self.history.stopping = True
            await self._check_end(producers[0], tasks)
            for task in tasks:
                task.cancel()

    async def _create(self) -> None:
        configs = {
            "remote.storage.enable": "true",
            "internal.segment.bytes": "500",
            "index.interval.bytes": "100",
            "local.retention.bytes": str(self._administration.choice((1, _LOCAL_BYTES))),
            "retention.bytes": str(self.retention_bytes),
            "min.insync.replicas": "2",
        }
        new = CreatableTopic(
            name=_OLD.topic,
            num_partitions=1,
            replication_factor=3,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        client = self._client("creator")

        async def create() -> None:
            answer = await client.call_any(CreateTopicsRequest(topics=[new], timeout_ms=3000), 7)
            check(answer.topics[0].error_code)

        try:
            await client.persist(create)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _delete_records(self) -> None:
        """Delete some of the oldest records, if the leader can be reached."""
        found = self._leader()
        log = None if found is None else found[1].log
        if log is None:
            return
        some = max(0, log.high_watermark - log.log_start_offset) // 4
        before = log.log_start_offset + self._administration.randint(0, some)
        self._deleted_before = max(self._deleted_before, before)
        partition = DeleteRecordsPartition(partition_index=0, offset=before)
        topic = DeleteRecordsTopic(name=_OLD.topic, partitions=[partition])
        try:
            await self._client("records").to_leader(
                _OLD, DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2
            )
            self.faults.happened.append(f"delete records before {before}")
        except KafkaError:
            self.faults.happened.append(f"delete records before {before}, unanswered")

    def _step(self, what: str) -> bool:
        """Count a step of the leader; whether it is interrupted there."""
        found = self._leader()
        if found is None or self._steps_done > self._interrupted_at:
            return False
        self._steps_done += 1
        if self._steps_done <= self._interrupted_at:
            return False
        power = self.random.random() < 0.5
        self.faults.happened.append(f"{'power' if power else 'kill'} {what}")
        end = self.cluster.lose_power if power else self.cluster.kill
        # Not in the context of the process that ends.
        self.simulation.loop.call_soon(end, found[1].registration.leader, context=Context())
        return True

    # While it runs.

    async def _read_always(self) -> None:
        """Read everything again and again."""
        client = self._client("reader")
        while not self.history.stopping:
            await self._read_all(client)
            await asyncio.sleep(0.5)

    async def _read_all(self, client: ClusterClient) -> dict[int, bytes]:
        """Read from the log start to the high watermark."""
        reader = Reader(client, _OLD)
        found: dict[int, bytes] = {}
        while True:
            try:
                part = await client.persist(lambda: reader.read(max_wait_ms=100))
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                # The beginning has expired meanwhile.
                reader.position = await client.persist(lambda: self._earliest(client))
                continue
            for offset, value in part.items():
                self.history.reads(_OLD, offset, value)
            found |= part
            if reader.position >= reader.high_watermark:
                return found

    async def _earliest(self, client: ClusterClient) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=_OLD.topic, partitions=[asked])]
        )
        answer = (await client.to_leader(_OLD, request, 8)).topics[0].partitions[0]
        check(answer.error_code)
        return int(answer.offset)

    async def _watch(self) -> None:
        while True:
            self.invariants.look()
            self._look_at_tiers()
            await asyncio.sleep(_LOOK_SECONDS)

    def _look_at_tiers(self) -> None:
        replicas = [(node_id, each) for node_id in self.cluster.serving for each in self._replicas(node_id)]
        logs = [(node_id, each.log) for node_id, each in replicas if each.log is not None]
        self._log_start = max([self._log_start, *(log.log_start_offset for _, log in logs)])
        if self._disabled:
            # The log of every replica starts with its first local record.
            self._log_start = max([self._log_start, *(log.local_log_start_offset for _, log in logs)])
        ends = {
            key.segment.start_offset: self.service.ends[key.segment.id]
            for key in self.service.objects
            if key.segment.id in self.service.ends and self.service.is_complete(key.segment.id)
        }
        for node_id, log in logs:
            covered = self._log_start
            for start, end in sorted(ends.items()):
                if start <= covered:
                    covered = max(covered, end + 1)
            assert covered >= log.local_log_start_offset, (
                f"confirmed before deleted: node {node_id} begins at {log.local_log_start_offset}, the log "
                f"at {self._log_start}, and the store has {sorted(ends.items())}"
            )

    def _replicas(self, node_id: int) -> list[Partition]:
        brokers = self.cluster.serving[node_id].broker
        return [each for each in brokers.replicas if each.topic_partition == _OLD]

    async def _pass_time(self, seconds: float, tasks: list[asyncio.Task[None]]) -> None:
        """Let time pass; fail at once if a task has failed."""
        until = self.simulation.loop.time() + seconds
        while self.simulation.loop.time() < until:
            await asyncio.sleep(min(0.2, seconds))
            for task in tasks:
                if task.done():
                    task.result()

    # The end.

    async def _check_end(self, producer: Producer, tasks: list[asyncio.Task[None]]) -> None:
        *workers, _ = tasks
        await self._reach("every client gets its answer", lambda: all(each.done() for each in workers), tasks)
        await self._reach("everything is copied", self._is_copied, tasks)
        start = await self._check_readable()
        assert self.retention_bytes >= 0 or start <= self._deleted_before, (
            f"readable: the log begins at {start}"
        )
        await self._pass_time(_CYCLE_SECONDS, tasks)
        await self._reach("no orphans", self._has_no_orphans, tasks)
        await self._disable_and_enable(tasks)
        for _ in range(_LAST_BATCHES):
            await producer.send()
        await self._reach("everything is copied again", self._is_copied, tasks)
        start = await self._check_readable()
        assert self.retention_bytes >= 0 or start <= self._log_start, f"readable: the log begins at {start}"
        await self._delete_topic()
        await self._reach("no orphans", lambda: not self.service.objects, tasks)

    async def _check_readable(self) -> int:
        """Read everything; return the first offset."""
        everything = await self._read_all(self._client("checker"))
        start = min(everything, default=0)
        for offset, value in self.history.acknowledged[_OLD].items():
            if offset >= start:
                found = everything.get(offset)
                assert found == value, f"readable: {value!r} at {offset} is {found!r}; {self}"
        return start

    async def _disable_and_enable(self, tasks: list[asyncio.Task[None]]) -> None:
        self._disabled = True
        await self._alter({"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"})
        await self._reach("nothing is tiered", self._is_disabled, tasks)
        await self._pass_time(2 * _LOOK_SECONDS, tasks)
        self._disabled = False
        await self._alter({"remote.storage.enable": "true", "local.retention.bytes": "1"})

    async def _alter(self, configs: dict[str, str]) -> None:
        client = self._client("configs")
        changes = [
            AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in configs.items()
        ]
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=_OLD.topic, configs=changes)

        async def alter() -> None:
            answer = await client.call_any(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            check(answer.responses[0].error_code)

        await client.persist(alter)

    def _is_disabled(self) -> bool:
        logs = [each.log for node_id in self.cluster.serving for each in self._replicas(node_id)]
        return not self.service.objects and all(log is not None and not log.config.tiered for log in logs)

    async def _reach(self, name: str, condition: Callable[[], bool], tasks: list[asyncio.Task[None]]) -> None:
        until = self.simulation.loop.time() + _HEALED_SECONDS
        while not condition():
            await self._pass_time(0.2, tasks)
            assert self.simulation.loop.time() < until, f"{name}: not within {_HEALED_SECONDS} s; {self}"

    def _leader(self) -> tuple[TieredStorage, Partition] | None:
        for node_id, node in self.cluster.serving.items():
            for partition in self._replicas(node_id):
                if partition.is_leader and node.broker.tiered is not None:
                    return node.broker.tiered, partition
        return None

    def _is_copied(self) -> bool:
        found = self._leader()
        if found is None or len(self.cluster.serving) < 3:
            return False
        tiered, partition = found
        log = partition.log
        remotes = [tiered.metadata.log(each.id) for each in tiered.partitions]
        remote = remotes[0] if remotes else None
        if log is None or remote is None:
            return False
        return not candidates(log, remote) and log.local_log_start_offset > 0

    def _has_no_orphans(self) -> bool:
        found = self._leader()
        if found is None or not self.service.is_quiet:
            return False
        tiered, _ = found
        (partition,) = tiered.partitions
        remote = tiered.metadata.log(partition.id)
        if remote is None:
            return False
        finished = {each.id for each in remote.segments if each.state is SegmentState.COPY_SEGMENT_FINISHED}
        return (
            len(finished) == len(remote)
            and {key.segment.id for key in self.service.objects} == finished
            and all(self.service.is_complete(each) for each in finished)
        )

    async def _delete_topic(self) -> None:
        client = self._client("deleter")
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=_OLD.topic)], timeout_ms=3000)

        async def delete() -> None:
            answer = await client.call_any(request, 6)
            if answer.responses[0].error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                check(answer.responses[0].error_code)

        await client.persist(delete)

    def __str__(self) -> str:
        kinds = {key.kind for key in self.service.objects}
        return (
            f"{len(self.service.objects)} objects ({sorted(kinds)}), store faults {self.service.counts}; "
            f"{dict(self.history.counts)}; {self.faults.happened}"
        )


def run_seed(seed: int) -> TieredRun:
    """Run one simulation; a failure names the command that replays it.

    Every fourth seed interrupts the leader at one step, one after the other; the others draw faults.
    """
    simulation = Simulation(f"tiered/{seed}")
    run = TieredRun(simulation, interrupted=seed // 4 if seed % 4 == 3 else None)
    try:
        simulation.run(run.run())
    except BaseException as error:
        error.add_note(f"in {run}")
        error.add_note(f"to replay: make simulate KIND=tiered SEED={seed}")
        raise
    return run
