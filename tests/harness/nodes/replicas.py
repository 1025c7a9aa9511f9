"""Several brokers in one event loop that only replicate: real logs, real sockets, the real handlers.

`Replicas` creates the metadata: it applies images to all running brokers and decides AlterPartition with
the rules of the controller. Tests can delay or fail each step.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from moldau.base.clock import SystemClock
from moldau.base.ids import TopicPartition, Uuid
from moldau.base.pool import ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.client import NodeConnection
from moldau.network.limits import ConnectionLimits
from moldau.network.listener import Listener
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from moldau.protocol.stored import metadata as stored
from moldau.quotas.client_quotas import ClientQuotas
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.authentication.authentication import NoAuthentication
from moldau.server.dispatch.apis import served_apis
from moldau.server.dispatch.context import Handler, ListenerContext
from moldau.server.dispatch.dispatcher import ApiDispatcher
from moldau.server.handlers import (
    api_versions,
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from moldau.server.partitions.fetch_sessions import FetchSessionCache
from moldau.server.settings import BROKER
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import Disk, PosixDisk
from moldau.storage.log.config import log_config_from
from moldau.storage.manager.failures import DirectoryFailure
from moldau.storage.manager.manager import LogManager

TOPIC_ID = Uuid(b"topic-id-16bytes")
TOPIC = "orders"
QUICK = {
    "replica.lag.time.max.ms": "1000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "50",
    "min.insync.replicas": "1",
}


class ReplicaBroker:
    """The parts of a node that the handlers of data requests need."""

    def __init__(self, world: Replicas, number: int, folder: Path, config: Mapping[str, str]) -> None:
        self.world = world
        self.id = number
        self.clock = SystemClock()
        self.pool = ThreadPool(2)
        self.disk: Disk = world.disks.get(number) or PosixDisk()
        self.limits = ConnectionLimits()
        self.config = BrokerConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": str(number),
                "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
                "log.dirs": str(folder),
                **config,
            }
        )
        self.folder = folder
        self.epoch = -1
        self.port = 0
        self.failures: list[DirectoryFailure] = []

    @property
    def image(self) -> MetadataImage:
        return self._local.image

    async def start(self) -> None:
        randomness = random.Random(self.id)
        self.fetch_sessions = FetchSessionCache(self.clock, randomness, 100)
        self.logs = LogManager(
            self.disk,
            self.clock,
            self.pool,
            randomness,
            {str(self.folder): Uuid(bytes([self.id]) * 16)},
            InlineRunner(self.disk),
            on_directory_failure=self._failed,
        )
        self._local = LocalBroker(self.id, self.clock, lambda: self.config, lambda: self.epoch)
        self.replicas = ReplicaManager(
            self._local,
            self.logs,
            lambda image, topic: log_config_from(image.topic_config(topic), self.config),
            self.world.alter_partition,
        )
        await self.logs.load(lambda topic: log_config_from({}, self.config))
        self._listener = Listener("PLAINTEXT", self.limits, max_frame=1 << 27)
        self.port = self._listener.bind("127.0.0.1", self.port)
        context = ListenerContext("PLAINTEXT", BROKER, "PLAINTEXT", served_apis(BROKER), self._handlers())
        await self._listener.accept(
            ApiDispatcher(context, NoAuthentication(), on_disconnect=lambda connection: None)
        )

    def _handlers(self) -> dict[int, Handler]:
        """Return the handlers of the data APIs; transactions are not verified."""
        metadata: Any = self._local
        settings: Any = SimpleNamespace(config=self.config)
        return {
            ApiKey.PRODUCE: partial(
                produce.handle, produce.Dependencies(self.replicas, self.pool, metadata, cast(Any, None))
            ),
            ApiKey.FETCH: partial(
                fetch.handle,
                fetch.Dependencies(
                    self.replicas,
                    self.fetch_sessions,
                    self.pool,
                    self.clock,
                    settings,
                    metadata,
                    self.limits,
                    ClientQuotas(),
                ),
            ),
            ApiKey.LIST_OFFSETS: partial(list_offsets.handle, self.replicas, self.pool, None),
            ApiKey.DELETE_RECORDS: partial(delete_records.handle, self.replicas),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: partial(offset_for_leader_epoch.handle, self.replicas),
            ApiKey.API_VERSIONS: partial(
                api_versions.handle, metadata, cast(Any, SimpleNamespace(kraft_version=1))
            ),
        }

    def _failed(self, failure: DirectoryFailure) -> None:
        self.failures.append(failure)
        self.replicas.went_offline(failure.partitions)

    async def crash(self) -> None:
        """Stop without syncing logs or marking a clean shutdown."""
        await self._listener.close()
        await self.replicas.close()
        self.logs.directories.release()
        self.pool.close()

    @property
    def partition(self) -> Partition:
        return self.replicas.by_name(TOPIC, 0)

    @property
    def log(self) -> Any:
        return self.partition.usable_log()

    async def connect(self) -> NodeConnection:
        return await NodeConnection.connect("127.0.0.1", self.port)


class Replicas:
    """Brokers 1, 2, 3, … and their metadata."""

    def __init__(self, folder: Path, config: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._config = {**QUICK, **(config or {})}
        self.disks: dict[int, Disk] = {}
        self.brokers: dict[int, ReplicaBroker] = {}
        self.image = MetadataImage.empty()
        self.alterations: list[AlterPartitionRequest] = []
        #: Error codes returned instead of decisions, one after the other.
        self.refusals: list[int] = []
        self._epoch = 100

    def __getitem__(self, number: int) -> ReplicaBroker:
        return self.brokers[number]

    async def start(self, *numbers: int, rack: Mapping[int, str] | None = None) -> None:
        for number in numbers:
            before = self.brokers.get(number)
            broker = ReplicaBroker(self, number, self._folder / str(number), self._config)
            broker.port = 0 if before is None else before.port
            await broker.start()
            self._epoch += 1
            broker.epoch = self._epoch
            # The metadata before its registration.
            await broker.replicas.apply(MetadataDelta.between(MetadataImage.empty(), self.image), self.image)
            self.brokers[number] = broker
            await self.apply(
                stored.RegisterBrokerRecord(
                    broker_id=number,
                    broker_epoch=broker.epoch,
                    fenced=False,
                    rack=(rack or {}).get(number),
                    end_points=[stored.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=broker.port)],
                )
            )
            broker.replicas.begin_fetching()

    async def crash(self, number: int) -> None:
        broker = self.brokers[number]
        await broker.crash()
        broker.epoch = -1

    async def fence(self, number: int) -> None:
        epoch = self.image.cluster.brokers[number].epoch
        await self.apply(stored.FenceBrokerRecord(id=number, epoch=epoch))

    async def apply(self, *records: Any, only: Sequence[int] | None = None) -> None:
        """Replay records; with `only`, apply them only to these brokers."""
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.apply(self.image.offset + 1, 1)
        for broker in self.brokers.values():
            if broker.epoch >= 0 and (only is None or broker.id in only):
                await broker.replicas.apply(delta, self.image)

    async def create(
        self,
        *replicas: int,
        isr: Sequence[int] | None = None,
        leader: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        settings = [
            stored.ConfigRecord(resource_type=2, resource_name=TOPIC, name=name, value=value)
            for name, value in (configs or {}).items()
        ]
        await self.apply(
            stored.TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
            stored.PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=list(replicas),
                isr=list(isr or replicas),
                leader=replicas[0] if leader is None else leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[Uuid(bytes([each]) * 16) for each in replicas],
            ),
            *settings,
        )

    async def change(self, *, only: Sequence[int] | None = None, **fields: Any) -> None:
        await self.apply(stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields), only=only)

    @property
    def registration(self) -> Any:
        return self.image.topics.by_id[TOPIC_ID].partitions[0]

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Decide as the controller: check the epochs of one partition, apply the change, publish it."""
        self.alterations.append(request)
        wanted = request.topics[0].partitions[0]
        answer = ResponsePartitionData(partition_index=0)
        if self.refusals:
            answer.error_code = self.refusals.pop(0)
        elif wanted.partition_epoch != self.registration.partition_epoch:
            answer.error_code = 95
        else:
            isr = [member.broker_id for member in wanted.new_isr_with_epochs]
            await self.change(isr=isr, leader_recovery_state=wanted.leader_recovery_state)
            now = self.registration
            answer.leader_id, answer.leader_epoch = now.leader, now.leader_epoch
            answer.isr, answer.partition_epoch = list(now.isr), now.partition_epoch
        return AlterPartitionResponse(topics=[ResponseTopicData(topic_id=TOPIC_ID, partitions=[answer])])


@asynccontextmanager
async def replicas(folder: Path, *numbers: int, **config: str) -> AsyncIterator[Replicas]:
    """Start brokers and stop them at the end; config names have underscores for dots."""
    world = Replicas(folder, {name.replace("_", "."): value for name, value in config.items()})
    try:
        await world.start(*(numbers or (1, 2, 3)))
        yield world
    finally:
        for broker in world.brokers.values():
            if broker.epoch >= 0:
                await broker.crash()


def orders(partition: int = 0) -> TopicPartition:
    return TopicPartition(TOPIC, partition)
