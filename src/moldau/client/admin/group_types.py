"""Groups of both protocols in results of the admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.base.ids import TopicPartition
from moldau.protocol.errors import DecodeError
from moldau.protocol.messages import consumer_group_describe, describe_groups
from moldau.protocol.schema import decode_prefix
from moldau.protocol.stored.consumer_protocol import ConsumerProtocolAssignment

CLASSIC, CONSUMER = "Classic", "Consumer"
_CONSUMER_PROTOCOL = "consumer"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in ListGroups; state and type are empty if the broker does not return them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    #: The target assignment; None in classic groups.
    target_assignment: list[TopicPartition] | None = None
    member_epoch: int | None = None
    #: Whether the member uses the classic protocol; None if unknown.
    classic: bool | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: list[MemberDescription]
    coordinator: int = -1
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


def from_classic(group: describe_groups.DescribedGroup, coordinator: int) -> GroupDescription:
    is_consumer = group.protocol_type == _CONSUMER_PROTOCOL
    members = [
        MemberDescription(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            assigned_partitions(member.member_assignment) if is_consumer else [],
            classic=True,
        )
        for member in group.members
    ]
    return GroupDescription(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        members,
        coordinator,
    )


def from_consumer(group: consumer_group_describe.DescribedGroup, coordinator: int) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _named(member.assignment),
            _named(member.target_assignment),
            member.member_epoch,
            None if member.member_type < 0 else member.member_type == 0,
        )
        for member in group.members
    ]
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        _CONSUMER_PROTOCOL,
        group.assignor_name,
        members,
        coordinator,
        group.group_epoch,
        group.assignment_epoch,
    )


def assigned_partitions(assignment: bytes) -> list[TopicPartition]:
    """Decode the assignment of a classic consumer; empty if it is not one."""
    if len(assignment) < 2:
        return []
    version = min(int.from_bytes(assignment[:2], "big"), ConsumerProtocolAssignment.VERSIONS.last)
    try:
        found, _ = decode_prefix(ConsumerProtocolAssignment, assignment, version, 2)
    except DecodeError:
        return []
    return [
        TopicPartition(topic.topic, index)
        for topic in found.assigned_partitions
        for index in topic.partitions
    ]


def _named(assignment: consumer_group_describe.Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    ]


def by_topic(partitions: Sequence[TopicPartition] | Mapping[TopicPartition, object]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
