"""Which partitions a share group has state for: made before a member may read, removed with the group.

The state itself is kept by the share coordinator. What is being made, what is there and what is being removed
is stored with the group, so that whatever was interrupted is done again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicId
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.share_groups import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord

#: Kafka's word for the name of a topic that is gone.
_UNKNOWN = "<UNKNOWN>"


class StateTopic(NamedTuple):
    name: str
    partitions: frozenset[int]
    #: When this was noted; not stored.
    since_ms: int


StateTopics = Mapping[TopicId, StateTopic]


class DeleteShareGroupState(NamedTuple):
    group_id: str
    partitions: Mapping[TopicId, Collection[int]]


_NONE: StateTopics = {}


class ShareTopics(NamedTuple):
    initializing: StateTopics = _NONE
    initialized: StateTopics = _NONE
    deleting: frozenset[TopicId] = frozenset()

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareTopics:
        return cls(
            _read(value.initializing_topics, now_ms),
            _read(value.initialized_topics, now_ms),
            frozenset(each.topic_id for each in value.deleting_topics),
        )

    def missing(
        self, names: Iterable[str], image: MetadataImage, now_ms: int, retry_ms: int
    ) -> dict[TopicId, StateTopic]:
        """The partitions of these topics that have no state, and for which none is being made either."""
        recent = {
            key: topic for key, topic in self.initializing.items() if now_ms - topic.since_ms < retry_ms
        }
        known = together(self.initialized, recent)
        found = {}
        for name in names:
            topic = image.topics.by_name.get(name)
            if topic is None:
                continue
            there = known[topic.id].partitions if topic.id in known else frozenset()
            if len(there) < len(topic.partitions):
                partitions = frozenset(topic.partitions) - there
                found[topic.id] = StateTopic(name, partitions, now_ms)
        return found

    def making(self, more: StateTopics) -> ShareTopics:
        """What was being removed and is made again is no longer being removed."""
        initializing = together(self.initializing, more)
        return self._replace(initializing=initializing, deleting=self.deleting - initializing.keys())

    def made(self, more: StateTopics) -> ShareTopics:
        return self._replace(
            initializing=_less(self.initializing, more), initialized=together(self.initialized, more)
        )

    def not_made(self, topics: Mapping[TopicId, Collection[int]]) -> ShareTopics:
        gone = {key: StateTopic("", frozenset(found), 0) for key, found in topics.items()}
        return self._replace(initializing=_less(self.initializing, gone))

    def forgetting(self, deleted: Collection[TopicId]) -> ShareTopics:
        """Without topics that no longer exist."""
        return ShareTopics(
            {key: each for key, each in self.initializing.items() if key not in deleted},
            {key: each for key, each in self.initialized.items() if key not in deleted},
            self.deleting - set(deleted),
        )

    def mentions(self, topic_ids: Collection[TopicId]) -> bool:
        return any(each in self.initializing or each in self.initialized for each in topic_ids) or bool(
            self.deleting.intersection(topic_ids)
        )


def together(one: StateTopics, other: StateTopics) -> dict[TopicId, StateTopic]:
    """Both; what the second says of a topic counts, its partitions are added."""
    result = dict(one)
    for key, topic in other.items():
        known = one[key].partitions if key in one else frozenset()
        result[key] = topic._replace(partitions=topic.partitions | known)
    return result


def _less(topics: StateTopics, gone: StateTopics) -> dict[TopicId, StateTopic]:
    result = {}
    for key, topic in topics.items():
        left = topic.partitions - gone[key].partitions if key in gone else topic.partitions
        if left:
            result[key] = topic._replace(partitions=left)
    return result


def named(topics: Mapping[TopicId, Collection[int]], image: MetadataImage, now_ms: int) -> StateTopics:
    return {key: StateTopic(_name(image, key), frozenset(found), now_ms) for key, found in topics.items()}


def topics_record(group_id: str, topics: ShareTopics, image: MetadataImage) -> CoordinatorRecord:
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_written(topics.initializing),
        initialized_topics=_written(topics.initialized),
        deleting_topics=[
            TopicInfo(topic_id=each, topic_name=_name(image, each)) for each in sorted(topics.deleting)
        ],
    )
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _name(image: MetadataImage, topic_id: TopicId) -> str:
    topic = image.topics.by_id.get(topic_id)
    return _UNKNOWN if topic is None else topic.name


def _written(topics: StateTopics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=key, topic_name=topic.name, partitions=sorted(topic.partitions))
        for key, topic in topics.items()
    ]


def _read(stored: Iterable[TopicPartitionsInfo], now_ms: int) -> StateTopics:
    return {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions), now_ms) for each in stored}
