"""Which partitions a copy task owns, from the topics of both clusters. Pure.

Tasks need no coordinator: a partition belongs to the task given by a hash of its topic and its number, so it
never moves while the number of tasks stays the same, and partitions of a topic are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition, Uuid
from moldau.pipelines.mirror.config.flow import TopicSelection
from moldau.protocol.messages.metadata import MetadataResponseTopic


class KnownTopic(NamedTuple):
    topic_id: Uuid
    partitions: int


class Assigned(NamedTuple):
    source: TopicPartition
    target: TopicPartition
    topic_id: Uuid


def known_topics(topics: Iterable[MetadataResponseTopic]) -> dict[str, KnownTopic]:
    return {
        topic.name: KnownTopic(topic.topic_id, len(topic.partitions))
        for topic in topics
        if topic.name and topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
    }


def assigned_partitions(
    selection: TopicSelection,
    source: Mapping[str, KnownTopic],
    target: Mapping[str, KnownTopic],
    task: int,
    tasks: int,
) -> tuple[list[Assigned], bool]:
    """Return the task's partitions that exist on the target, and whether some do not exist there yet."""
    assigned: list[Assigned] = []
    missing = False
    for name, topic in source.items():
        if not selection.mirrors(name):
            continue
        remote = selection.remote(name)
        existing = target[remote].partitions if remote in target else 0
        missing = missing or existing < topic.partitions
        first = crc32(name.encode())
        assigned += [
            Assigned(TopicPartition(name, index), TopicPartition(remote, index), topic.topic_id)
            for index in range(min(existing, topic.partitions))
            if (first + index) % tasks == task
        ]
    return assigned, missing
