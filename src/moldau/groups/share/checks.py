"""The validation of ShareGroupHeartbeat requests, with Kafka's errors in Kafka's order."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import LEAVE_GROUP_EPOCH, ShareMember
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

_MAX_MEMBER_ID_LENGTH = 36


def is_member_id(member_id: str | None) -> bool:
    return member_id is not None and 0 < len(member_id) <= _MAX_MEMBER_ID_LENGTH


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Validate a request without looking at the group."""
    if not is_member_id(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    for name, value in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_GROUP_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def check_size(group: ShareGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {max_size} members.",
        )


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Accept the current epoch, and the previous one in case a response was lost."""
    if epoch in (0, member.member_epoch):
        return
    if epoch < member.member_epoch and epoch == member.previous_member_epoch:
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )
