"""The target assignment of a share group: the partitions that each member reads."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors import simple
from moldau.groups.assignors.java_order import strings_in_hash_order
from moldau.groups.assignors.spec import NOTHING, Assignment, GroupSpec, MemberSpec
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import ShareMember
from moldau.groups.share.records import target_epoch_record, target_record
from moldau.metadata.image import MetadataImage
from moldau.statemachine.coordinator_records import CoordinatorRecord


def target_assignment(
    group: ShareGroup,
    image: MetadataImage,
    updated: ShareMember,
    epoch: int,
    homogeneous: bool,
    now_ms: int,
) -> tuple[list[CoordinatorRecord], dict[str, Assignment]]:
    """Assign the initialized partitions of a group in which one member has joined or changed."""
    members = {**group.members, updated.member_id: updated}
    spec = _spec(group, image, members, homogeneous)
    state = {} if group.topics is None else group.topics.initialized
    try:
        targets = simple.assign(spec, {topic_id: topic.partitions for topic_id, topic in state.items()})
    except KafkaError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Failed to compute a new target assignment for epoch {epoch}: {error.message}",
        ) from error
    records = [
        target_record(group.group_id, member_id, targets.get(member_id, NOTHING))
        for member_id in spec.members
        if group.targets.get(member_id) != targets.get(member_id, NOTHING)
    ]
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return records, targets


def _spec(
    group: ShareGroup, image: MetadataImage, members: dict[str, ShareMember], homogeneous: bool
) -> GroupSpec:
    by_name = image.topics.by_name
    specs = {}
    for member_id in strings_in_hash_order(members):
        names = strings_in_hash_order(sorted(members[member_id].subscribed_topic_names))
        subscribed = [by_name[name].id for name in names if name in by_name]
        specs[member_id] = MemberSpec(subscribed, group.targets.get(member_id, NOTHING))
    topic_ids = {topic_id for spec in specs.values() for topic_id in spec.subscribed_topic_ids}
    counts = {topic_id: len(image.topics.by_id[topic_id].partitions) for topic_id in topic_ids}
    return GroupSpec(specs, homogeneous, counts, {})
