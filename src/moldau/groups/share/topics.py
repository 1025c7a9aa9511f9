"""The partitions of a share group at the share coordinator: initializing, initialized and deleting (KIP-932).

A partition is initialized before a member may read it, and deleted with the group. The status is stored with
the group, so that an interrupted initialization or deletion is repeated.
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

#: Kafka's placeholder for the name of a deleted topic.
_UNKNOWN = "<UNKNOWN>"


class StateTopic(NamedTuple):
    name: str
    partitions: frozenset[int]
    #: The time at which the status was set; not stored.
    since_ms: int


StateTopics = Mapping[TopicId, StateTopic]


class DeleteShareGroupState(NamedTuple):
    group_id: str
    partitions: Mapping[TopicId, Collection[int]]


_NONE: StateTopics = {}


class ShareStateTopics(NamedTuple):
    initializing: StateTopics = _NONE
    initialized: StateTopics = _NONE
    deleting: frozenset[TopicId] = frozenset()

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareStateTopics:
        return cls(
            _from_stored(value.initializing_topics, now_ms),
            _from_stored(value.initialized_topics, now_ms),
            frozenset(each.topic_id for each in value.deleting_topics),
        )

    def missing(
        self, names: Iterable[str], image: MetadataImage, now_ms: int, retry_ms: int
    ) -> dict[TopicId, StateTopic]:
        """Return the partitions of these topics that are neither initialized nor being initialized."""
        recent = {
            key: topic for key, topic in self.initializing.items() if now_ms - topic.since_ms < retry_ms
        }
        known = combine(self.initialized, recent)
        found = {}
        for name in names:
            topic = image.topics.by_name.get(name)
            if topic is None:
                continue
            present = known[topic.id].partitions if topic.id in known else frozenset()
            if len(present) < len(topic.partitions):
                partitions = frozenset(topic.partitions) - present
                found[topic.id] = StateTopic(name, partitions, now_ms)
        return found

    def start_initialization(self, added: StateTopics) -> ShareStateTopics:
        """Add initializing partitions; their topics are no longer being deleted."""
        initializing = combine(self.initializing, added)
        return self._replace(initializing=initializing, deleting=self.deleting - initializing.keys())

    def complete_initialization(self, added: StateTopics) -> ShareStateTopics:
        return self._replace(
            initializing=_without(self.initializing, added), initialized=combine(self.initialized, added)
        )

    def cancel_initialization(self, topics: Mapping[TopicId, Collection[int]]) -> ShareStateTopics:
        cancelled = {key: StateTopic("", frozenset(found), 0) for key, found in topics.items()}
        return self._replace(initializing=_without(self.initializing, cancelled))

    def without_topics(self, deleted: Collection[TopicId]) -> ShareStateTopics:
        """Remove topics that were deleted."""
        return ShareStateTopics(
            {key: each for key, each in self.initializing.items() if key not in deleted},
            {key: each for key, each in self.initialized.items() if key not in deleted},
            self.deleting - set(deleted),
        )

    def contains_any(self, topic_ids: Collection[TopicId]) -> bool:
        return any(each in self.initializing or each in self.initialized for each in topic_ids) or bool(
            self.deleting.intersection(topic_ids)
        )


def combine(one: StateTopics, other: StateTopics) -> dict[TopicId, StateTopic]:
    """Return the union of both; names and times come from the second."""
    result = dict(one)
    for key, topic in other.items():
        known = one[key].partitions if key in one else frozenset()
        result[key] = topic._replace(partitions=topic.partitions | known)
    return result


def _without(topics: StateTopics, removed: StateTopics) -> dict[TopicId, StateTopic]:
    result = {}
    for key, topic in topics.items():
        remaining = topic.partitions - removed[key].partitions if key in removed else topic.partitions
        if remaining:
            result[key] = topic._replace(partitions=remaining)
    return result


def state_topics(topics: Mapping[TopicId, Collection[int]], image: MetadataImage, now_ms: int) -> StateTopics:
    return {key: StateTopic(_name(image, key), frozenset(found), now_ms) for key, found in topics.items()}


def topics_record(group_id: str, topics: ShareStateTopics, image: MetadataImage) -> CoordinatorRecord:
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_to_stored(topics.initializing),
        initialized_topics=_to_stored(topics.initialized),
        deleting_topics=[
            TopicInfo(topic_id=each, topic_name=_name(image, each)) for each in sorted(topics.deleting)
        ],
    )
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _name(image: MetadataImage, topic_id: TopicId) -> str:
    topic = image.topics.by_id.get(topic_id)
    return _UNKNOWN if topic is None else topic.name


def _to_stored(topics: StateTopics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=key, topic_name=topic.name, partitions=sorted(topic.partitions))
        for key, topic in topics.items()
    ]


def _from_stored(stored: Iterable[TopicPartitionsInfo], now_ms: int) -> StateTopics:
    return {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions), now_ms) for each in stored}
