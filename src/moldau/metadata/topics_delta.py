"""The changes to topics and their partitions within a delta."""

from __future__ import annotations

from moldau.base.ids import TopicId, format_uuid
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.image import PartitionRegistration, TopicImage, TopicsImage
from moldau.metadata.registrations import changed_partition, partition_from_record
from moldau.protocol.stored.metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class _ChangedTopic:
    """A changed topic: a copy of its partitions, and the indexes of those that changed."""

    __slots__ = ("changed", "id", "name", "partitions")

    def __init__(self, topic_id: TopicId, name: str, partitions: dict[int, PartitionRegistration]) -> None:
        self.id = topic_id
        self.name = name
        self.partitions = partitions
        self.changed: set[int] = set()

    def put(self, index: int, partition: PartitionRegistration) -> None:
        self.partitions[index] = partition
        self.changed.add(index)


class TopicsDelta:
    __slots__ = ("_base", "_new_names", "_topics", "created", "deleted")

    def __init__(self, base: TopicsImage) -> None:
        self._base = base
        self._topics: dict[TopicId, _ChangedTopic] = {}
        self._new_names: dict[str, TopicId] = {}
        #: The ids of topics that the base image does not have.
        self.created: set[TopicId] = set()
        #: Deleted topics as they are in the base image.
        self.deleted: dict[TopicId, TopicImage] = {}

    @property
    def changed(self) -> dict[TopicId, set[int]]:
        """The new and changed topics, with the indexes of their new and changed partitions."""
        return {topic_id: topic.changed for topic_id, topic in self._topics.items()}

    def is_empty(self) -> bool:
        return not self._topics and not self.deleted

    def replay_topic(self, record: TopicRecord) -> None:
        known_id = record.topic_id in self._topics or record.topic_id in self._base.by_id
        if known_id or self._find_by_name(record.name) is not None:
            raise InconsistentMetadata(f"the metadata log creates topic {record.name} twice")
        self._topics[record.topic_id] = _ChangedTopic(record.topic_id, record.name, {})
        self._new_names[record.name] = record.topic_id
        self.created.add(record.topic_id)

    def replay_partition(self, record: PartitionRecord) -> None:
        self._topic(record.topic_id).put(record.partition_id, partition_from_record(record))

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise InconsistentMetadata(
                f"the metadata log changes partition {topic.name}-{record.partition_id}, which does not exist"
            )
        topic.put(record.partition_id, changed_partition(partition, record))

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of one topic, or of all topics if the name is empty
        (KIP-966)."""
        if record.topic_name:
            topic_id = self._find_by_name(record.topic_name)
            if topic_id is None:
                raise InconsistentMetadata(
                    f"the metadata log clears the ELR of topic {record.topic_name}, which does not exist"
                )
            self._clear_elr(topic_id)
            return
        for topic_id in [*self._base.by_id, *self.created]:
            if topic_id not in self.deleted:
                self._clear_elr(topic_id)

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic; return its name."""
        topic_id = record.topic_id
        name = self._topic(topic_id).name
        del self._topics[topic_id]
        self.created.discard(topic_id)
        before = self._base.by_id.get(topic_id)
        if before is None:
            del self._new_names[name]
        else:
            self.deleted[topic_id] = before
        return name

    def become(self, topics: TopicsImage) -> None:
        """Change the topics so that they equal `topics`."""
        for topic_id, removed in self._base.by_id.items():
            if topic_id not in topics.by_id:
                self.deleted[topic_id] = removed
        for topic_id, topic in topics.by_id.items():
            before = self._base.by_id.get(topic_id)
            if before is None:
                self.created.add(topic_id)
                self._new_names[topic.name] = topic_id
            known = before.partitions if before is not None else {}
            changed = [(index, each) for index, each in topic.partitions.items() if known.get(index) != each]
            if changed or before is None:
                copied = self._topics[topic_id] = _ChangedTopic(topic_id, topic.name, dict(topic.partitions))
                copied.changed.update(index for index, _ in changed)

    def apply(self) -> TopicsImage:
        if self.is_empty():
            return self._base
        by_id, by_name = dict(self._base.by_id), dict(self._base.by_name)
        for topic_id, removed in self.deleted.items():
            del by_id[topic_id]
            del by_name[removed.name]
        for topic_id, topic in self._topics.items():
            image = TopicImage(topic_id, topic.name, topic.partitions)
            by_id[topic_id] = image
            by_name[topic.name] = image
        return TopicsImage(by_id, by_name)

    def _clear_elr(self, topic_id: TopicId) -> None:
        current = self._topics.get(topic_id) or self._base.by_id[topic_id]
        for index, partition in list(current.partitions.items()):
            if partition.elr or partition.last_known_elr:
                cleared = partition._replace(
                    elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                )
                self._topic(topic_id).put(index, cleared)

    def _topic(self, topic_id: TopicId) -> _ChangedTopic:
        topic = self._topics.get(topic_id)
        if topic is None:
            before = None if topic_id in self.deleted else self._base.by_id.get(topic_id)
            if before is None:
                raise InconsistentMetadata(
                    f"the metadata log refers to topic id {format_uuid(topic_id)}, which does not exist"
                )
            topic = self._topics[topic_id] = _ChangedTopic(topic_id, before.name, dict(before.partitions))
        return topic

    def _find_by_name(self, name: str) -> TopicId | None:
        before = self._base.by_name.get(name)
        if before is not None and before.id not in self.deleted:
            return before.id
        return self._new_names.get(name)
