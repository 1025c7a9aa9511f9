"""The consumer protocol embedded in JoinGroup and SyncGroup: subscriptions and assignments.

A message starts with its version. A version newer than the newest known one is decoded as that one, because
later versions only append fields.
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

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def decode_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    return _decode(ConsumerProtocolSubscription, metadata)


def subscription_topics(metadata: bytes) -> list[str]:
    """Decode only the topics; they come first in every version, so version 0 is enough."""
    if len(metadata) < _VERSION_BYTES:
        raise DecodeError("a subscription starts with its version")
    subscription, _ = decode_prefix(ConsumerProtocolSubscription, memoryview(metadata), 0, _VERSION_BYTES)
    return subscription.topics


def decode_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Decode an assignment; a member without one has no bytes at all."""
    return _decode(ConsumerProtocolAssignment, assignment) if assignment else ConsumerProtocolAssignment()


def has_user_data(assignment: ConsumerProtocolAssignment) -> bool:
    return bool(assignment.user_data)


def topic_ids(
    topics: Iterable[AssignmentTopicPartition | SubscriptionTopicPartition], image: MetadataImage
) -> list[tuple[TopicId, list[int]]]:
    """Replace topic names by ids; topics that do not exist are left out."""
    by_name = image.topics.by_name
    return [(by_name[each.topic].id, each.partitions) for each in topics if each.topic in by_name]


def encode_assignment(assignment: Assignment, image: MetadataImage, metadata: bytes) -> bytes:
    """Encode an assignment in the version of the member's subscription, `metadata`."""
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
        raise DecodeError("a message of the embedded consumer protocol starts with its version")
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise DecodeError(f"unsupported version of the embedded consumer protocol: {version}")
    return min(version, kind.VERSIONS.last)
