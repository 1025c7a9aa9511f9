"""What classic consumers tell each other inside JoinGroup and SyncGroup, read and written by the coordinator.

A message begins with its version. A newer one than we know can be read as the newest we know: later versions
only add fields behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import Assignment
from moldau.metadata.image import MetadataImage
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import Message, decode_prefix, encode_bytes
from moldau.protocol.stored.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)

M = TypeVar("M", bound=Message)

_VERSION_BYTES = 2


def decode_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    return _decode(ConsumerProtocolSubscription, metadata)


def decode_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """A member that was never assigned anything has no bytes at all."""
    return _decode(ConsumerProtocolAssignment, assignment) if assignment else ConsumerProtocolAssignment()


def has_user_data(assignment: ConsumerProtocolAssignment) -> bool:
    return bool(assignment.user_data)


def topic_ids(
    topics: Iterable[AssignmentTopicPartition | SubscriptionTopicPartition], image: MetadataImage
) -> list[tuple[TopicId, list[int]]]:
    """By id instead of name; topics that do not exist are left out."""
    by_name = image.topics.by_name
    return [(by_name[each.topic].id, each.partitions) for each in topics if each.topic in by_name]


def encode_assignment(assignment: Assignment, image: MetadataImage, metadata: bytes) -> bytes:
    """In the version of the member's subscription, which is `metadata`."""
    version = _version(ConsumerProtocolAssignment, metadata)
    by_id = image.topics.by_id
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignmentTopicPartition(topic=by_id[topic_id].name, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
            if topic_id in by_id
        ]
    )
    return version.to_bytes(_VERSION_BYTES, "big") + encode_bytes(message, version)


def _decode(kind: type[M], data: bytes) -> M:
    message, _ = decode_prefix(kind, memoryview(data), _version(kind, data), _VERSION_BYTES)
    return message


def _version(kind: type[Message], data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("a message of the consumer protocol begins with its version")
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise DecodeError(f"unsupported version of the consumer protocol: {version}")
    return min(version, kind.VERSIONS.last)
