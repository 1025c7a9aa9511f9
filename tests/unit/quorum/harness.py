"""A metadata quorum on a real folder, with its controller."""

from __future__ import annotations

import asyncio
import errno
import itertools
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

from moldau.base.clock import ManualClock
from moldau.base.pool import InlinePool, Pool
from moldau.controller.brokers.lifecycle import broker_heartbeat, register_broker
from moldau.controller.controller import Controller, Decide
from moldau.controller.state import DecisionContext
from moldau.controller.topics.lifecycle import create_topics
from moldau.metadata.features import default_levels
from moldau.metadata.image import MetadataImage
from moldau.protocol.apis import APIS
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.schema import Message
from moldau.quorum.bootstrap import bootstrap_records, write_bootstrap, write_initial_voters
from moldau.quorum.committed import CommittedMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.recovery import recover
from moldau.quorum.settings import QuorumSettings
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet
from moldau.storage.disk.disk import Buffer, File, PosixDisk
from tests.unit.controller.harness import CLUSTER_ID, config, new_topic
from tests.unit.metadata.builders import uid

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")

#: Each start gets another seed, so that ids differ.
_SEEDS = itertools.count()
ENDPOINT = VoterEndpoint("CONTROLLER", "localhost", 9093)


class FullDisk(PosixDisk):
    """A disk whose log segments cannot be written while `is_full` or after `room_for_writes` writes, and
    whose syncs hang until `may_sync` is set."""

    def __init__(self) -> None:
        self.is_full = False
        self.full_on_sync = False
        self.room_for_writes: int | None = None
        self.may_sync = threading.Event()
        self.may_sync.set()

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        file = super().open(path, create=create, read_only=read_only)
        return _FullFile(file, self) if path.endswith(".log") else file  # type: ignore[return-value]


class _FullFile:
    def __init__(self, file: File, disk: FullDisk) -> None:
        self._file = file
        self._disk = disk

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> None:
        room = self._disk.room_for_writes
        if self._disk.is_full or room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        if room is not None:
            self._disk.room_for_writes = room - 1
        self._file.pwrite(buffers, offset)

    def sync(self) -> None:
        self._disk.may_sync.wait()
        if self._disk.full_on_sync:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._file.sync()


class Node:
    def __init__(self, folder: Path, *, disk: PosixDisk | None = None, **settings: object) -> None:
        self.folder = folder
        self.disk = disk or PosixDisk()
        self.clock = ManualClock()
        self.failures: list[Exception] = []
        values: dict[str, object] = {
            "node_id": 1,
            "directory": str(folder),
            "directory_id": uid(101),
            "endpoints": (ENDPOINT,),
        }
        if "static_voters" in settings:
            ids = cast(Sequence[int], settings["static_voters"])
            settings["static_voters"] = VoterSet.of(Voter(each, endpoints=(ENDPOINT,)) for each in ids)
        self.settings = QuorumSettings(**(values | settings))  # type: ignore[arg-type]

    @property
    def log_folder(self) -> Path:
        return self.folder / "__cluster_metadata-0"

    def format(self, *, voters: Sequence[Voter] | None = None, levels: dict[str, int] | None = None) -> None:
        records = bootstrap_records(default_levels() | (levels or {}))
        write_bootstrap(self.disk, self.clock, str(self.folder), records)
        if not self.settings.static_voters.voters:
            chosen = voters or [Voter(1, uid(101), (ENDPOINT,))]
            write_initial_voters(self.disk, self.clock, str(self.folder), VoterSet.of(chosen))

    def make(self, pool: Pool | None = None) -> MetadataQuorum:
        return MetadataQuorum(
            self.settings,
            Controller(config(), CLUSTER_ID, random.Random(next(_SEEDS))),
            disk=self.disk,
            clock=self.clock,
            pool=pool or InlinePool(),
            randomness=random.Random(next(_SEEDS)),
            on_failure=self.failures.append,
        )

    @asynccontextmanager
    async def running(self, pool: Pool | None = None) -> AsyncIterator[MetadataQuorum]:
        quorum = self.make(pool)
        await quorum.start()
        try:
            yield quorum
        finally:
            await quorum.close()


def image_on_disk(node: Node) -> MetadataImage:
    """Return the image of a log and its snapshots, as if every record were committed."""
    log = MetadataLog.open(node.disk, node.clock, node.settings)
    recovered = recover(log, node.disk, node.settings)
    committed = CommittedMetadata(log, InlinePool(), recovered.loader, recovered.end_offset)
    asyncio.run(committed.advance(log.end_offset))
    return committed.image


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 30)

    asyncio.run(limited())


def decide(quorum: MetadataQuorum, decide: Decide[Q, R], request: Q) -> Awaitable[R]:
    """Have the controller of this node decide a request in its newest version."""
    context = DecisionContext(APIS[request.API_KEY].max_version, now_ms=0, time_ms=0)
    return quorum.write(lambda: quorum.controller.decide(decide, request, context))


def create(quorum: MetadataQuorum, *names: str, partitions: int = 1) -> Awaitable[CreateTopicsResponse]:
    """Create topics with one replica each."""
    request = CreateTopicsRequest(topics=[new_topic(name, partitions, 1) for name in names])
    return decide(quorum, create_topics, request)


async def with_broker(quorum: MetadataQuorum) -> None:
    """Register broker 1 and unfence it."""
    from moldau.metadata.features import supported_features
    from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
    from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

    levels = supported_features(quorum.image.features.levels)
    registration = BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=CLUSTER_ID,
        incarnation_id=uid(quorum.leader_epoch + 10),
        listeners=[Listener(name="PLAINTEXT", host="localhost", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in levels.items()
        ],
        rack=None,
        log_dirs=[uid(101)],
    )
    answer = await decide(quorum, register_broker, registration)
    heartbeat = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=answer.broker_epoch, current_metadata_offset=quorum.image.offset
    )
    await decide(quorum, broker_heartbeat, heartbeat)
