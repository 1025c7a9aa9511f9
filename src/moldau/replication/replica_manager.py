"""The replicas this node holds, kept in step with the metadata image.

`apply` is called once for every published image: it opens logs for new replicas, gives each its role,
drops deleted ones and passes changed configs on. Partitions are keyed by topic id; names are resolved
only at the edge, through the image.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.replication.partition import Partition
from moldau.storage.log_config import LogConfig
from moldau.storage.log_manager import LogManager

log = logging.getLogger(__name__)

PartitionKey = tuple[TopicId, int]


class ReplicaManager:
    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        config_of: Callable[[MetadataImage, str], LogConfig],
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._config_of = config_of
        self._partitions: dict[PartitionKey, Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        self.image = MetadataImage.empty()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    # Look-ups.

    def by_name(self, topic: str, index: int) -> Partition:
        partition = self._by_name.get((topic, index))
        if partition is not None:
            return partition
        known = self.image.topics.by_name.get(topic)
        raise self._missing(known, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def by_id(self, topic_id: TopicId, index: int) -> Partition:
        partition = self._partitions.get((topic_id, index))
        if partition is not None:
            return partition
        known = self.image.topics.by_id.get(topic_id)
        raise self._missing(known, index, ErrorCode.UNKNOWN_TOPIC_ID)

    def _missing(self, topic: TopicImage | None, index: int, unknown: ErrorCode) -> KafkaError:
        if topic is None:
            return KafkaError(unknown)
        if index in topic.partitions:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # Following the metadata.

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Bring the replicas in line with `image`; `delta` says what to look at."""
        for topic_id in delta.topics_deleted:
            await self._drop_topic(topic_id)
        for topic_id, indexes in delta.topics_changed.items():
            topic = image.topics.by_id.get(topic_id)
            if topic is not None:
                await self._apply_topic(image, topic, indexes)
        self._apply_configs(delta, image)
        self.image = image

    async def _apply_topic(self, image: MetadataImage, topic: TopicImage, indexes: set[int]) -> None:
        config = self._config_of(image, topic.name)
        for index in sorted(indexes):
            registration = topic.partitions[index]
            if self._node_id in registration.replicas:
                await self._apply_partition(topic, index, registration, config)

    async def _apply_partition(
        self, topic: TopicImage, index: int, registration: PartitionRegistration, config: LogConfig
    ) -> None:
        partition = self._partitions.get((topic.id, index))
        if partition is None:
            topic_partition = TopicPartition(topic.name, index)
            replica_log = await self._logs.get_or_create(topic_partition, topic.id, config)
            partition = Partition(topic_partition, topic.id, replica_log, self._node_id)
            self._partitions[topic.id, index] = partition
            self._by_name[topic.name, index] = partition
        if partition.is_leader and partition.registration == registration:
            return
        partition.take_role(registration)

    async def _drop_topic(self, topic_id: TopicId) -> None:
        for key in [key for key in self._partitions if key[0] == topic_id]:
            partition = self._partitions.pop(key)
            self._by_name.pop((partition.topic_partition.topic, key[1]), None)
            partition.stop()
            await self._logs.delete(partition.topic_partition)

    def _apply_configs(self, delta: MetadataDelta, image: MetadataImage) -> None:
        changed = delta.topic_configs_changed()
        everything = delta.broker_configs_changed(self._node_id)
        for partition in self._partitions.values() if everything else self._of_topics(changed):
            name = partition.topic_partition.topic
            self._logs.update_config(partition.topic_partition, self._config_of(image, name))

    def _of_topics(self, names: set[str]) -> list[Partition]:
        return [p for p in self._partitions.values() if p.topic_partition.topic in names] if names else []

    # Failing directories.

    def directory_failed(self, topic_partitions: set[TopicPartition]) -> None:
        for partition in self._partitions.values():
            if partition.topic_partition in topic_partitions:
                log.error("%s is offline: its log directory failed", partition.topic_partition)
                partition.log = None
