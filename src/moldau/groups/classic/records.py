"""The GroupMetadata record of a classic group, in the version that Kafka 4.3 writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember
from moldau.protocol.stored.classic_groups import GroupMetadataKey, GroupMetadataValue
from moldau.statemachine.coordinator_records import CoordinatorRecord

VALUE_VERSION = 3


def new_group_record(group_id: str, now_ms: int) -> CoordinatorRecord:
    """A new group without members."""
    return _record(group_id, GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now_ms))


def empty_group_record(group: ClassicGroup, now_ms: int) -> CoordinatorRecord:
    """The generation after the last member has left."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation + 1,
        protocol=None,
        leader=None,
        current_state_timestamp=now_ms,
    )
    return _record(group.group_id, value)


def group_record(
    group: ClassicGroup,
    members: Iterable[ClassicMember],
    assignments: Mapping[str, bytes],
    leader: str | None,
) -> CoordinatorRecord:
    """The group with these members and their assignments."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=leader,
        current_state_timestamp=group.state_timestamp_ms,
        members=[member.stored(group.protocol, assignments.get(member.member_id, b"")) for member in members],
    )
    return _record(group.group_id, value)


def _record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, VALUE_VERSION)
