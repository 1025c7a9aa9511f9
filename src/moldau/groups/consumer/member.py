"""A member of a consumer group: its subscription, its epoch and its partitions.

Members are immutable; a request makes a new one, which replaces the old one when its records are replayed.
Every partition of a member has the epoch in which it was assigned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from moldau.base.ids import TopicId
from moldau.groups.classic.member import ClassicProtocol
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

LEAVE_GROUP_EPOCH = -1
#: A static member leaves temporarily.
LEAVE_GROUP_STATIC_EPOCH = -2

#: By topic: partitions and the epoch in which each was assigned.
OwnedPartitions = Mapping[TopicId, Mapping[int, int]]
NO_PARTITIONS: OwnedPartitions = {}


class MemberState(IntEnum):
    """The state of reconciliation, with the numbers that Kafka stores."""

    #: The member has its target assignment.
    STABLE = 1
    #: It must revoke partitions.
    UNREVOKED_PARTITIONS = 2
    #: It waits for partitions that other members have not revoked yet.
    UNRELEASED_PARTITIONS = 3
    #: A newer release stored a state that this one does not know.
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The JoinGroup metadata of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)
    classic: ClassicMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """The subscribed regular expression, or None."""
        return self.subscribed_topic_regex or None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: OwnedPartitions, pending: OwnedPartitions
    ) -> ConsumerMember:
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending,
        )

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """Apply a ConsumerGroupMemberMetadata record."""
        stored = value.classic_member_metadata
        classic = None
        if stored is not None:
            protocols = (
                ClassicProtocol(each.name, bytes(each.metadata)) for each in stored.supported_protocols
            )
            classic = ClassicMetadata(stored.session_timeout_ms, tuple(protocols))
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=classic,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """Apply a ConsumerGroupCurrentMemberAssignment record."""
        known = value.state in MemberState.__members__.values()
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_partitions(value.assigned_partitions, value.member_epoch),
            pending_revocation=_partitions(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> ConsumerMember:
        """Apply the tombstone of the current assignment."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )


def _partitions(stored: Iterable[TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Decode partitions; releases before 4.2 stored no assignment epochs, so the member epoch counts."""
    default = max(member_epoch, 0)
    found: dict[TopicId, Mapping[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            found[each.topic_id] = dict.fromkeys(each.partitions, default)
        else:
            found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
