"""Checks of members of a consumer group that speak the classic protocol, with Kafka's errors."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE
from moldau.groups.consumer.checks import check_instance
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ClassicSide, ConsumerMember
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest


def check_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    supported = any(
        group.classic_protocols.get(each.name, 0) == group.classic_members for each in request.protocols
    )
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
        )


def known_classic(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[ConsumerMember, ClassicSide]:
    """The member that asks, which has to speak the classic protocol and know its epoch."""
    instance_id, generation = request.group_instance_id, request.generation_id
    if instance_id is None:
        member = group.member(request.member_id)
    else:
        known = group.static_member(instance_id)
        if known is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        check_instance(known, request.member_id, instance_id)
        member = known
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
        )
    if generation != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.member_epoch} "
            f"of member {member.member_id}.",
        )
    return member, member.classic


def check_sync(request: SyncGroupRequest, member: ConsumerMember, classic: ClassicSide) -> None:
    name = classic.protocols[0].name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal "
            f"to the group protocol type {CONSUMER_PROTOCOL_TYPE}.",
        )
    if request.protocol_name not in (None, name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal "
            f"to the protocol name {name} returned in the join response.",
        )
