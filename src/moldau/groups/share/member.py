"""A member of a share group: its subscription, its epoch and its partitions.

Members are immutable; a request makes a new one, which replaces the old one when its records are replayed.
Several members may share a partition, so no member has to revoke partitions before others get them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from moldau.groups.assignors.spec import NOTHING, Assignment
from moldau.groups.consumer.member import MemberState
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    TopicPartitions,
)

LEAVE_GROUP_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state == MemberState.STABLE and self.member_epoch == epoch

    def moved_to(self, epoch: int, assigned: Assignment) -> ShareMember:
        if epoch == self.member_epoch:
            return replace(self, assigned=assigned)
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=self.member_epoch,
            state=MemberState.STABLE,
            assigned=assigned,
        )

    def with_subscription(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        """Apply a ShareGroupMemberMetadata record."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        """Apply a ShareGroupCurrentMemberAssignment record."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=_partitions(value.assigned_partitions),
        )

    def without_assignment(self) -> ShareMember:
        """Apply the tombstone of the current assignment."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NOTHING,
        )


def _partitions(stored: Iterable[TopicPartitions]) -> Assignment:
    return {each.topic_id: tuple(sorted(each.partitions)) for each in stored}
