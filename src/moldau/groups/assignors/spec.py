"""The input and output of assignors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, format_uuid

#: Partitions by topic, in ascending order; topics without partitions are left out.
Assignment = Mapping[TopicId, tuple[int, ...]]
NOTHING: Assignment = {}


class MemberSpec(NamedTuple):
    #: Existing topics, without duplicates.
    subscribed_topic_ids: Sequence[TopicId]
    #: The member's previous target assignment.
    assignment: Assignment = NOTHING
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    #: In the order of iteration.
    members: Mapping[str, MemberSpec]
    #: Whether all members subscribe to the same topics.
    homogeneous: bool
    partition_counts: Mapping[TopicId, int]
    #: The partitions of the previous target assignment.
    assigned: Mapping[TopicId, Collection[int]]


Assignor = Callable[[GroupSpec], dict[str, Assignment]]


def partition_count(spec: GroupSpec, topic_id: TopicId) -> int:
    count = spec.partition_counts.get(topic_id)
    if count is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Members are subscribed to topic {format_uuid(topic_id)} which doesn't exist in the topic "
            "metadata.",
        )
    return count


def as_assignment(partitions: Mapping[TopicId, Collection[int]]) -> Assignment:
    return {topic_id: tuple(sorted(found)) for topic_id, found in partitions.items() if found}
