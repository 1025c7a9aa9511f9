"""The partitions that this broker hosts: look them up, and keep them in line with the metadata image.

`apply` is called once for every published image. It removes replicas that were deleted or reassigned, opens
the logs of new ones (`ReplicaLogs`), gives each its role, starts and stops fetching (`Fetchers`) and
applies changed topic configs. Partitions are keyed by topic id; names are resolved only at the edge.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.base.json_log import event
from moldau.base.loop_slice import LoopSlice
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.network.connector import PLAINTEXT, Connector
from moldau.replication.fetch_session import PartitionKey
from moldau.replication.fetchers import Fetchers
from moldau.replication.local_broker import BuildRemoteState, LocalBroker
from moldau.replication.partition import Partition
from moldau.replication.partition_changes import AlterPartition, PartitionChanges
from moldau.replication.replica_logs import Placed, ReplicaLogs
from moldau.replication.throttles import Throttles
from moldau.replication.traffic import Traffic
from moldau.storage.disk.disk import DiskFull, LogDirectoryFailed
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]
#: A full disk fails every produce request; it is logged this often.
_DISK_FULL_LOG_SECONDS = 10.0


class ReplicaManager:
    def __init__(
        self,
        broker: LocalBroker,
        logs: LogManager,
        config_of: Callable[[MetadataImage, str], LogConfig],
        alter_partition: AlterPartition,
        connector: Connector = PLAINTEXT,
    ) -> None:
        self._broker = broker
        self._next_disk_full_log = 0.0
        self.traffic = Traffic()
        self._logs = logs
        self._config_of = config_of
        self.changes = PartitionChanges(broker, alter_partition)
        self.throttles = Throttles(broker)
        logs.moves.throttle = self.throttles.moves
        self.fetchers = Fetchers(broker, logs, self.throttles.follower, self.storage_failed, connector)
        self._partitions: dict[PartitionKey, Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._replica_logs = ReplicaLogs(broker, logs)

    def set_remote_state_builder(self, build: BuildRemoteState) -> None:
        """Let followers begin after what is in the remote tier."""
        self._broker.build_remote_state = build

    def begin_fetching(self) -> None:
        """Start the fetchers; this broker is registered, so leaders know its broker epoch."""
        self.fetchers.begin()

    async def close(self) -> None:
        """Stop fetching and proposing ISR changes."""
        await self.fetchers.close()
        await self.changes.close()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    @property
    def broker_id(self) -> int:
        return self._broker.id

    # Lookup.

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

    # Metadata.

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> list[Placed]:
        """Bring the replicas in line with `image`; return the directories to report to the controller."""
        # First, so that a deleted topic is unknown to clients while its logs are being deleted.
        self._broker.image = image
        await self._remove(delta, image)
        changed = [
            (image.topics.by_id[topic_id], index)
            for topic_id, indexes in delta.topics_changed.items()
            for index in sorted(indexes)
            if self._broker.id in image.topics.by_id[topic_id].partitions[index].replicas
        ]
        # Resolving a topic's configs costs more than opening one of its logs.
        config_of = cache(partial(self._config_of, image))
        await self._add_new(changed, delta.image, config_of)
        turn = LoopSlice(self._broker.clock)
        for topic, index in changed:
            self._give_role((topic.id, index), topic.partitions[index])
            await turn.pause()
        self._apply_configs(delta, config_of)
        if delta.brokers.changes or delta.broker_configs_changed(self._broker.id):
            self.fetchers.brokers_changed()
        self.fetchers.close_idle()
        return [placed for topic, index in changed if (placed := self._placed(topic, index)) is not None]

    def _give_role(self, key: PartitionKey, registration: PartitionRegistration) -> None:
        partition = self._partitions[key]
        if registration.leader == self._broker.id:
            # First, because responses in flight must not be appended any more.
            self.fetchers.unfollow(key)
            partition.take_role(registration)
            return
        known = partition.current
        partition.take_role(registration)
        if (
            known is None
            or known.leader_epoch != registration.leader_epoch
            or known.leader != registration.leader
        ):
            self.fetchers.follow(key, partition)

    async def _add_new(
        self, changed: list[tuple[TopicImage, int]], before: MetadataImage, config_of: ConfigOf
    ) -> None:
        to_open: list[tuple[TopicImage, int]] = []
        for topic, index in changed:
            if (topic.id, index) in self._partitions:
                continue
            if self._replica_logs.is_offline(topic, index, before):
                # Before logs are created, which takes time: clients get KAFKA_STORAGE_ERROR in the meantime.
                self._add(topic, index, None)
            else:
                to_open.append((topic, index))
        opened = await self._replica_logs.open(to_open, config_of)
        for topic, index in to_open:
            self._add(topic, index, opened[topic.id, index])

    def _add(self, topic: TopicImage, index: int, log: Log | None) -> None:
        topic_partition = TopicPartition(topic.name, index)
        traffic = self.traffic.add_replica(topic.name)
        partition = Partition(topic_partition, topic.id, log, self._broker, self.changes, traffic)
        self._partitions[topic.id, index] = partition
        self._by_name[topic_partition] = partition

    async def open_again(self) -> list[Placed]:
        """Retry logs that could not be created; return the directories to report, as `apply` does."""
        placed = []
        async for key, opened in self._replica_logs.retry(self._partitions.__contains__):
            partition = self._partitions[key]
            partition.take_log(opened)
            if not partition.is_leader:
                self.fetchers.follow(key, partition)
            where = self._placed(self._broker.image.topics.by_id[key[0]], key[1])
            if where is not None:
                placed.append(where)
        return placed

    def _placed(self, topic: TopicImage, index: int) -> Placed | None:
        return self._replica_logs.placement(topic, index, self._partitions[topic.id, index].log)

    async def _remove(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Remove replicas of deleted topics and those reassigned to other brokers, with their logs."""
        removed = []
        for key in self._unwanted(delta, image):
            partition = self._partitions.pop(key)
            self.fetchers.unfollow(key)
            self._replica_logs.discard(key)
            if self._by_name.get(partition.topic_partition) is partition:
                del self._by_name[partition.topic_partition]
            partition.stop()
            self.traffic.remove_replica(partition.topic_partition.topic)
            removed.append(partition.topic_partition)
        if removed:
            await self._logs.delete(*removed)

    def _unwanted(self, delta: MetadataDelta, image: MetadataImage) -> list[PartitionKey]:
        deleted, changed = delta.topics_deleted, delta.topics_changed
        if not deleted and not changed:
            return []
        return [
            key
            for key in self._partitions
            if key[0] in deleted
            or (key[0] in changed and not self._is_assigned(image.topics.by_id[key[0]], key[1]))
        ]

    def _is_assigned(self, topic: TopicImage, index: int) -> bool:
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
        """Shrink the ISR of partitions with lagging replicas; called every `replica.lag.time.max.ms` / 2."""
        turn = LoopSlice(self._broker.clock)
        for partition in list(self._partitions.values()):
            partition.shrink_isr()
            await turn.pause()

    # Log directories.

    def log_replaced(self, topic_partition: TopicPartition, moved: Log) -> list[Placed]:
        """Use the log of a replica that has moved to another directory; return the directory to report."""
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
        """Handle a storage error of any log: a failed disk takes its log directory offline."""
        if isinstance(error, LogDirectoryFailed):
            self._logs.failures.report(error)
        elif isinstance(error, DiskFull):
            now = self._broker.clock.monotonic()
            if now >= self._next_disk_full_log:
                self._next_disk_full_log = now + _DISK_FULL_LOG_SECONDS
                logger.error("%s", error, extra=event("disk.full"))
