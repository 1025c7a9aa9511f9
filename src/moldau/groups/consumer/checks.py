"""The validation of ConsumerGroupHeartbeat requests, with Kafka's errors in Kafka's order."""

from __future__ import annotations

from collections.abc import Collection

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.java_order import strings_in_hash_order
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    ConsumerMember,
)
from moldau.groups.consumer.reconciliation import OwnedByClient
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

#: The version from which clients generate their member id (KIP-1082).
_MEMBER_ID_REQUIRED_SINCE = 1


def check_request(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Validate a request without looking at the group."""
    epoch = request.member_epoch
    if api_version >= _MEMBER_ID_REQUIRED_SINCE or epoch > 0 or epoch == LEAVE_GROUP_EPOCH:
        _refuse_empty(request.member_id, "MemberId")
    _refuse_empty(request.group_id, "GroupId")
    _refuse_empty(request.instance_id, "InstanceId")
    _refuse_empty(request.rack_id, "RackId")
    if epoch == 0:
        _check_join(request)
    elif epoch == LEAVE_GROUP_STATIC_EPOCH:
        _refuse(request.instance_id is None, "InstanceId can't be null.")
    else:
        _refuse(epoch < LEAVE_GROUP_STATIC_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(strings_in_hash_order(assignors))}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _refuse(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
    _refuse(
        request.topic_partitions is None or bool(request.topic_partitions),
        "TopicPartitions must be empty when (re-)joining.",
    )
    _refuse(
        request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _refuse_empty(value: str | None, name: str) -> None:
    _refuse(value is not None and not value.strip(), f"{name} can't be empty.")


def _refuse(wrong: bool, message: str) -> None:
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: OwnedByClient) -> None:
    """Accept the current epoch, or the previous one if the member owns only assigned partitions."""
    if epoch in (0, member.member_epoch):
        return
    if epoch < member.member_epoch:
        is_previous = epoch == member.previous_member_epoch
        if is_previous and _is_assigned(owned, member):
            return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_assigned(owned: OwnedByClient, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(member.assigned.get(topic_id, {}).keys() >= set(partitions) for topic_id, partitions in owned)


def check_released(known: ConsumerMember, member_id: str, instance_id: str) -> None:
    """Check that a static member has left temporarily before another one replaces it."""
    if known.member_epoch != LEAVE_GROUP_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {known.member_id} member.",
        )


def get_static_member(group: ConsumerGroup, instance_id: str, member_id: str | None) -> ConsumerMember:
    """Return the static member; FENCED_INSTANCE_ID if it has another member id, unless that is None."""
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member_id is not None:
        check_instance(known, member_id, instance_id)
    return known


def check_instance(known: ConsumerMember, member_id: str, instance_id: str) -> None:
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.member_id}.",
        )
