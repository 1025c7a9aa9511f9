"""ConsumerGroupDescribe: a consumer group as people see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import NOTHING
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def described_group(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(None, None) or default_assignor,
        members=[_described_member(group, member, image) for member in group.members.values()],
    )


def _described_member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    owned: dict[TopicId, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, found in partitions.items():
            owned.setdefault(topic_id, []).extend(found)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned, image),
        target_assignment=_assignment(group.targets.get(member.member_id, NOTHING), image),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[TopicId, Iterable[int]], image: MetadataImage) -> Assignment:
    """Topics that are gone are left out."""
    topics = image.topics.by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=list(found))
            for topic_id, found in partitions.items()
            if topic_id in topics
        ]
    )
