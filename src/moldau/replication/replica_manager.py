"""The replicas this node holds, kept in step with the metadata image.

`apply` is called once for every published image: it opens logs for new replicas, gives each its role and lets
followers fetch, drops those that were deleted or went to other brokers, and passes changed configs on.
Partitions are keyed by topic id; names are resolved only at the edge. A replica whose directory is offline
stays in the table without a log, so that clients are told about the disk instead of about a partition that
does not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR, DirectoryId, TopicId, TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.network.client import OpenConnection
from moldau.replication.fetchers import Fetchers
from moldau.replication.following import PartitionKey
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.partition_changes import AlterPartition, PartitionChanges
from moldau.replication.throttles import Throttles
from moldau.storage.disk.disk import DiskFull, LogDirectoryFailed
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.log_manager import LogManager, NewLog

log = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]
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
        broker: LocalBroker,
        logs: LogManager,
        config_of: Callable[[MetadataImage, str], LogConfig],
        alter_partition: AlterPartition,
        open_connection: OpenConnection | None = None,
    ) -> None:
        self._broker = broker
        self._next_complaint = 0.0
        self._logs = logs
        self._config_of = config_of
        self._changes = PartitionChanges(broker, alter_partition)
        self.throttles = Throttles(broker)
        logs.moves.throttle = self.throttles.moves
        self._fetchers = Fetchers(broker, logs, self.throttles.follower, self.storage_failed, open_connection)
        self._partitions: dict[PartitionKey, Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        #: New logs that found no room, or no file descriptor: tried again by `open_again`.
        self._unopened: dict[PartitionKey, NewLog] = {}

    def begin_fetching(self) -> None:
        """This broker is registered: leaders may hear from it."""
        self._fetchers.begin()

    async def close(self) -> None:
        """Stop copying and reporting; the logs are not touched from here any more."""
        await self._fetchers.close()
        await self._changes.close()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    # Look-ups.

    def by_name(self, topic: str, index: int) -> Partition:
        partition = self._by_name.get((topic, index))
        if partition is not None:
            return partition
        raise self._missing(
            self._broker.image.topics.by_name.get(topic), index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    def by_id(self, topic_id: TopicId, index: int) -> Partition:
        partition = self._partitions.get((topic_id, index))
        if partition is not None:
            return partition
        raise self._missing(self._broker.image.topics.by_id.get(topic_id), index, ErrorCode.UNKNOWN_TOPIC_ID)

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
        self._broker.image = image
        await self._drop(delta, image)
        changed = [
            (image.topics.by_id[topic_id], index)
            for topic_id, indexes in delta.topics_changed.items()
            for index in sorted(indexes)
            if self._broker.id in image.topics.by_id[topic_id].partitions[index].replicas
        ]
        # Working out a topic's settings costs more than opening one of its logs.
        config_of = cache(partial(self._config_of, image))
        await self._open(delta, config_of, changed)
        turn = LoopSlice(self._broker.clock)
        for topic, index in changed:
            self._give_role((topic.id, index), topic.partitions[index])
            await turn.pause()
        self._apply_configs(delta, config_of)
        if delta.brokers.changes or delta.broker_configs_changed(self._broker.id):
            self._fetchers.brokers_changed()
        self._fetchers.close_idle()
        return [placed for topic, index in changed if (placed := self._placed(topic, index)) is not None]

    def _give_role(self, key: PartitionKey, registration: PartitionRegistration) -> None:
        partition = self._partitions[key]
        if registration.leader == self._broker.id:
            # Before anything else: what is still being fetched must not reach the log any more.
            self._fetchers.unfollow(key)
            partition.take_role(registration)
            return
        known = partition.current
        partition.take_role(registration)
        if (
            known is None
            or known.leader_epoch != registration.leader_epoch
            or known.leader != registration.leader
        ):
            self._fetchers.follow(key, partition)

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
                # By now the name may be that of another topic, with a log of its own.
                if self._logs.get(new.topic_partition) is found:
                    await self._logs.delete(new.topic_partition)
                continue
            log.info("%s has its log now", new.topic_partition)
            partition.take_log(found)
            if not partition.is_leader:
                self._fetchers.follow(key, partition)
            where = self._placed(self._broker.image.topics.by_id[key[0]], key[1])
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
        directory = registration.directory_of(self._broker.id)
        return None if directory in _NOT_A_DIRECTORY else directory

    def _add(self, topic_partition: TopicPartition, topic_id: TopicId, found: Log | None) -> None:
        partition = Partition(topic_partition, topic_id, found, self._broker, self._changes)
        self._partitions[topic_id, topic_partition.partition] = partition
        self._by_name[topic_partition] = partition

    def _placed(self, topic: TopicImage, index: int) -> Placed | None:
        found = self._partitions[topic.id, index].log
        actual = self._logs.directories.of(found).id if found is not None else None
        if actual is None or actual == topic.partitions[index].directory_of(self._broker.id):
            return None
        return Placed(topic.id, index, actual)

    async def _drop(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Replicas of deleted topics, and those that other brokers hold now: gone with their logs."""
        gone = []
        for key in self._unwanted(delta, image):
            partition = self._partitions.pop(key)
            self._fetchers.unfollow(key)
            self._unopened.pop(key, None)
            if self._by_name.get(partition.topic_partition) is partition:
                del self._by_name[partition.topic_partition]
            partition.stop()
            gone.append(partition.topic_partition)
        if gone:
            await self._logs.delete(*gone)

    def _unwanted(self, delta: MetadataDelta, image: MetadataImage) -> list[PartitionKey]:
        doomed, changed = delta.topics_deleted, delta.topics_changed
        if not doomed and not changed:
            return []
        return [
            key
            for key in self._partitions
            if key[0] in doomed
            or (key[0] in changed and not self._is_mine(image.topics.by_id[key[0]], key[1]))
        ]

    def _is_mine(self, topic: TopicImage, index: int) -> bool:
        registration = topic.partitions.get(index)
        return registration is not None and self._broker.id in registration.replicas

    def _apply_configs(self, delta: MetadataDelta, config_of: ConfigOf) -> None:
        changed = delta.topic_configs_changed()
        everything = delta.broker_configs_changed(self._broker.id)
        if not changed and not everything:
            return
        for topic in sorted(changed):
            self.throttles.follow_topic(topic)
        for partition in self._partitions.values():
            name = partition.topic_partition.topic
            if everything or name in changed:
                self._logs.update_config(partition.topic_partition, config_of(name))

    # In-sync replicas.

    async def shrink_isr(self) -> None:
        """Called from time to time, twice in `replica.lag.time.max.ms`."""
        turn = LoopSlice(self._broker.clock)
        for partition in list(self._partitions.values()):
            partition.shrink_isr()
            await turn.pause()

    # Directories.

    def log_replaced(self, topic_partition: TopicPartition, moved: Log) -> list[Placed]:
        """The replica has moved to another directory; what the controller should hear about it."""
        partition = self._by_name.get(topic_partition)
        topic = self._broker.image.topics.by_name.get(topic_partition.topic)
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
        now = self._broker.clock.monotonic()
        due = now >= self._next_complaint
        if due:
            self._next_complaint = now + _COMPLAIN_EVERY_SECONDS
        return due
