"""The consumer protocol: metadata and assignments of classic consumers inside JoinGroup and SyncGroup."""

from __future__ import annotations

from moldau.protocol.schema import Message, Struct, array, bytes_, int32, string


class SubscriptionTopicPartition(Struct):
    topic: str = string("1+")
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string, "0+")
    user_data: bytes | None = bytes_("0+", default=None, nullable="0+")
    owned_partitions: list[SubscriptionTopicPartition] = array(
        SubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", default=None, nullable="3+", ignorable=True)


class AssignmentTopicPartition(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[AssignmentTopicPartition] = array(AssignmentTopicPartition, "0+")
    user_data: bytes | None = bytes_("0+", default=None, nullable="0+")
