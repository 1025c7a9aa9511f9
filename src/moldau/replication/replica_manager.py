"""The replicas this node holds, kept in step with the metadata image.

`apply` is called once for every published image: it opens logs for new replicas, gives each its role, drops
deleted ones and passes changed configs on. Partitions are keyed by topic id; names are resolved only at the
edge. A replica whose directory is offline stays in the table without a log, so that clients are told about
the disk instead of about a partition that does not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR, DirectoryId, TopicId, TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.replication.partition import Partition
from moldau.storage.disk import DiskFull, LogDirectoryFailed
from moldau.storage.log import Log
from moldau.storage.log_config import LogConfig
from moldau.storage.log_manager import LogManager, NewLog

log = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]
PartitionKey = tuple[TopicId, int]
_NOT_A_DIRECTORY = (UNASSIGNED_DIR, MIGRATING_DIR, LOST_DIR)
_COMPLAIN_EVERY_SECONDS = 10.0


class Placed(NamedTuple):
    """A replica lies in another directory than the metadata says (or the metadata does not say)."""

    topic_id: TopicId
    partition: int
    directory_id: DirectoryId


class ReplicaManager:
    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        config_of: Callable[[MetadataImage, str], LogConfig],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._next_complaint = 0.0
        self._node_id = node_id
        self._logs = logs
        self._config_of = config_of
        self._partitions: dict[PartitionKey, Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._image = MetadataImage.empty()
        #: New logs that found no room, or no file descriptor: tried again by `open_again`.
        self._unopened: dict[PartitionKey, NewLog] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    # Look-ups.

    def by_name(self, topic: str, index: int) -> Partition:
        partition = self._by_name.get((topic, index))
        if partition is not None:
            return partition
        raise self._missing(
            self._image.topics.by_name.get(topic), index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    def by_id(self, topic_id: TopicId, index: int) -> Partition:
        partition = self._partitions.get((topic_id, index))
        if partition is not None:
            return partition
        raise self._missing(self._image.topics.by_id.get(topic_id), index, ErrorCode.UNKNOWN_TOPIC_ID)

    def _missing(self, topic: TopicImage | None, index: int, unknown: ErrorCode) -> KafkaError:
        if topic is None:
            return KafkaError(unknown)
        if index in topic.partitions:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # Following the metadata.

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> list[Placed]:
        """Bring the replicas in line with `image`; what the controller should hear about where they lie."""
        # First, because whoever looks for a deleted topic while its logs go must find it unknown.
        self._image = image
        await self._drop(delta.topics_deleted)
        changed = [
            (image.topics.by_id[topic_id], index)
            for topic_id, indexes in delta.topics_changed.items()
            for index in sorted(indexes)
            if self._node_id in image.topics.by_id[topic_id].partitions[index].replicas
        ]
        # Working out a topic's settings costs more than opening one of its logs.
        config_of = cache(partial(self._config_of, image))
        await self._open(delta, config_of, changed)
        turn = LoopSlice(self._clock)
        for topic, index in changed:
            self._partitions[topic.id, index].take_role(topic.partitions[index])
            await turn.pause()
        self._apply_configs(delta, config_of)
        return [placed for topic, index in changed if (placed := self._placed(topic, index)) is not None]

    async def _open(
        self, delta: MetadataDelta, config_of: ConfigOf, changed: list[tuple[TopicImage, int]]
    ) -> None:
        wanted: dict[TopicPartition, tuple[TopicId, NewLog]] = {}
        for topic, index in changed:
            if (topic.id, index) in self._partitions:
                continue
            config = config_of(topic.name)
            topic_partition = TopicPartition(topic.name, index)
            directory = self._directory(topic.partitions[index])
            known_before = delta.image.offset < 0 or delta.image.topics.partition(topic.id, index) is not None
            if known_before and (lost := self._lost(topic_partition)) is not None:
                log.error("%s", lost)
                self._add(topic_partition, topic.id, None)
            else:
                wanted[topic_partition] = (topic.id, NewLog(topic_partition, topic.id, config, directory))
        opened = await self._logs.create_all(new for _, new in wanted.values())
        for topic_partition, (topic_id, new) in wanted.items():
            found = opened[topic_partition]
            if isinstance(found, KafkaError):
                log.error("%s has no log: %s", topic_partition, found)
                self._unopened[topic_id, topic_partition.partition] = new
            self._add(topic_partition, topic_id, found if isinstance(found, Log) else None)

    async def open_again(self) -> list[Placed]:
        """Another try for what could not be opened; the same answer as `apply` gives."""
        placed = []
        for key, new in list(self._unopened.items()):
            found = (await self._logs.create_all([new]))[new.topic_partition]
            if isinstance(found, KafkaError):
                continue
            partition = self._partitions.get(key)
            if partition is None or self._unopened.pop(key, None) is None:
                await self._logs.delete(new.topic_partition)
                continue
            log.info("%s has its log now", new.topic_partition)
            partition.take_log(found)
            where = self._placed(self._image.topics.by_id[key[0]], key[1])
            if where is not None:
                placed.append(where)
        return placed

    def _lost(self, topic_partition: TopicPartition) -> str | None:
        """A replica that is not new and not in any directory that works lies in one that does not."""
        offline = [directory.path for directory in self._logs.directories if directory.offline]
        if self._logs.get(topic_partition) is None and offline:
            return f"{topic_partition} is offline with its log directory, one of {', '.join(offline)}"
        return None

    def _directory(self, registration: PartitionRegistration) -> DirectoryId | None:
        directory = registration.directory_of(self._node_id)
        return None if directory in _NOT_A_DIRECTORY else directory

    def _add(self, topic_partition: TopicPartition, topic_id: TopicId, found: Log | None) -> None:
        partition = Partition(topic_partition, topic_id, found, self._node_id)
        self._partitions[topic_id, topic_partition.partition] = partition
        self._by_name[topic_partition] = partition

    def _placed(self, topic: TopicImage, index: int) -> Placed | None:
        found = self._partitions[topic.id, index].log
        actual = self._logs.directories.of(found).id if found is not None else None
        if actual is None or actual == topic.partitions[index].directory_of(self._node_id):
            return None
        return Placed(topic.id, index, actual)

    async def _drop(self, topic_ids: Iterable[TopicId]) -> None:
        doomed = set(topic_ids)
        gone = []
        for key in [key for key in self._partitions if key[0] in doomed] if doomed else ():
            partition = self._partitions.pop(key)
            self._unopened.pop(key, None)
            self._by_name.pop(partition.topic_partition, None)
            partition.stop()
            gone.append(partition.topic_partition)
        if gone:
            await self._logs.delete(*gone)

    def _apply_configs(self, delta: MetadataDelta, config_of: ConfigOf) -> None:
        changed = delta.topic_configs_changed()
        everything = delta.broker_configs_changed(self._node_id)
        if not changed and not everything:
            return
        for partition in self._partitions.values():
            name = partition.topic_partition.topic
            if everything or name in changed:
                self._logs.update_config(partition.topic_partition, config_of(name))

    # Directories.

    def log_replaced(self, topic_partition: TopicPartition, moved: Log) -> list[Placed]:
        """The replica has moved to another directory; what the controller should hear about it."""
        partition = self._by_name.get(topic_partition)
        topic = self._image.topics.by_name.get(topic_partition.topic)
        if partition is None or topic is None or topic.id != partition.topic_id:
            return []
        partition.take_log(moved)
        placed = self._placed(topic, topic_partition.partition)
        return [] if placed is None else [placed]

    def went_offline(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            partition = self._by_name.get(topic_partition)
            if partition is not None:
                partition.go_offline()

    def storage_failed(self, error: KafkaError) -> None:
        """Whoever meets an error of a log says so here: a failed disk takes its directory offline."""
        if isinstance(error, LogDirectoryFailed):
            self._logs.storage_failed(error)
        elif isinstance(error, DiskFull) and self._may_complain():
            log.error("%s", error)

    def _may_complain(self) -> bool:
        """A full disk fails every produce request; one line in a while is enough."""
        now = self._clock.monotonic()
        due = now >= self._next_complaint
        if due:
            self._next_complaint = now + _COMPLAIN_EVERY_SECONDS
        return due
