"""The records of a consumer group. A key without value (a tombstone) removes what the key identifies."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.groups.assignors.java_order import string_order
from moldau.groups.assignors.spec import Assignment
from moldau.groups.consumer.member import ConsumerMember, OwnedPartitions
from moldau.groups.modern.regex import ResolvedRegex
from moldau.protocol.schema import Message
from moldau.protocol.stored.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    classic = member.classic
    stored = None
    if classic is not None:
        stored = ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=each.metadata) for each in classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names, key=string_order),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=stored,
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.pending_revocation),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def _topic_partitions(owned: OwnedPartitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id, partitions=list(partitions), assignment_epochs=list(partitions.values())
        )
        for topic_id, partitions in owned.items()
    ]


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics, key=string_order),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return CoordinatorRecord(key, value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return _tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def subscription_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Remove the record in which releases before 4.1 stored the topic metadata; now the epoch has a hash."""
    return _tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        _tombstone(ConsumerGroupCurrentMemberAssignmentKey(**names)),
        _tombstone(ConsumerGroupTargetAssignmentMemberKey(**names)),
        _tombstone(ConsumerGroupMemberMetadataKey(**names)),
    ]


def group_tombstones(
    group_id: str, member_ids: Collection[str], regexes: Mapping[str, object]
) -> list[CoordinatorRecord]:
    """Remove all records of a group, in an order that can be replayed."""
    names = [{"group_id": group_id, "member_id": member_id} for member_id in member_ids]
    return [
        *(_tombstone(ConsumerGroupCurrentMemberAssignmentKey(**each)) for each in names),
        *(_tombstone(ConsumerGroupTargetAssignmentMemberKey(**each)) for each in names),
        _tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(_tombstone(ConsumerGroupMemberMetadataKey(**each)) for each in names),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        subscription_metadata_tombstone(group_id),
        _tombstone(ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def _tombstone(key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)
