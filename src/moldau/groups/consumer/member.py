"""A member of a consumer group: what it said of itself, its epoch, and the partitions it has.

Members are immutable; a request makes a new one, which takes the old one's place when its records are
replayed. Every partition a member has carries the epoch in which it was given to the member.
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
#: A static member that goes only for a while.
LEAVE_GROUP_STATIC_EPOCH = -2

#: By topic: partitions and the epoch in which the member was given each.
OwnedPartitions = Mapping[TopicId, Mapping[int, int]]
NO_PARTITIONS: OwnedPartitions = {}


class MemberState(IntEnum):
    """Where a member stands on the way to its target assignment, with the numbers Kafka stores."""

    #: It has all it is to have, as far as it was told.
    STABLE = 1
    #: It has yet to give partitions up.
    UNREVOKED_PARTITIONS = 2
    #: It waits for partitions that others have not given up yet.
    UNRELEASED_PARTITIONS = 3
    #: A newer release wrote a state we do not know.
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What is known of a member that still speaks the classic protocol."""

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
    classic: ClassicSide | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """None when it does not subscribe by a regular expression."""
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
        """As a stored record describes it."""
        stored = value.classic_member_metadata
        classic = None
        if stored is not None:
            protocols = (
                ClassicProtocol(each.name, bytes(each.metadata)) for each in stored.supported_protocols
            )
            classic = ClassicSide(stored.session_timeout_ms, tuple(protocols))
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
        """As a stored record describes what it has."""
        known = value.state in MemberState.__members__.values()
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_partitions(value.assigned_partitions, value.member_epoch),
            pending_revocation=_partitions(value.partitions_pending_revocation, value.member_epoch),
        )

    def gone(self) -> ConsumerMember:
        """What is left of it when what it has is no longer stored."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )


def _partitions(stored: Iterable[TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Releases before 4.2 stored no epochs of partitions: then the member's own counts."""
    default = max(member_epoch, 0)
    found: dict[TopicId, Mapping[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            found[each.topic_id] = dict.fromkeys(each.partitions, default)
        else:
            found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
