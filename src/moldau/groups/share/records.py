"""The records of a share group. A key without value (a tombstone) removes what the key identifies."""

from __future__ import annotations

from collections.abc import Collection

from moldau.groups.assignors.java_order import string_order
from moldau.groups.assignors.spec import Assignment
from moldau.groups.share.member import ShareMember
from moldau.protocol.schema import Message
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names, key=string_order),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        _tombstone(ShareGroupCurrentMemberAssignmentKey(**names)),
        _tombstone(ShareGroupTargetAssignmentMemberKey(**names)),
        _tombstone(ShareGroupMemberMetadataKey(**names)),
    ]


def group_tombstones(group_id: str, member_ids: Collection[str]) -> list[CoordinatorRecord]:
    """Remove all records of a group, in an order that can be replayed."""
    names = [{"group_id": group_id, "member_id": member_id} for member_id in member_ids]
    return [
        *(_tombstone(ShareGroupCurrentMemberAssignmentKey(**each)) for each in names),
        *(_tombstone(ShareGroupTargetAssignmentMemberKey(**each)) for each in names),
        _tombstone(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(_tombstone(ShareGroupMemberMetadataKey(**each)) for each in names),
        _tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        _tombstone(ShareGroupMetadataKey(group_id=group_id)),
    ]


def _tombstone(key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)
