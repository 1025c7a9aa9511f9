"""Common state of consumer, share and streams groups: the coordinator computes the assignment of each member.

Three epochs describe such a group. The group epoch is bumped with every change of members, subscriptions or
topics; the target assignment has the group epoch it was computed for; each member has the epoch of the target
it has reconciled to. All state comes from replayed records, except the fields marked soft.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.group import Group
from moldau.groups.modern.subscription import Subscriptions
from moldau.protocol.messages.list_groups import ListedGroup


class RefreshDeadline(NamedTuple):
    """The time of the next check of the subscribed topics, for a group of at least this epoch."""

    time_ms: int = 0
    epoch: int = 0


class ModernMember(Protocol):
    """An immutable member; stored records make a new one."""

    @property
    def member_id(self) -> str: ...

    def with_subscription(self, value: Any) -> Self: ...

    def with_assignment(self, value: Any) -> Self: ...

    def without_assignment(self) -> Self: ...


M = TypeVar("M", bound=ModernMember)
#: The target assignment of a member.
T = TypeVar("T")


class ModernGroup(Group, Generic[M, T]):
    type: ClassVar[str]
    #: The protocol type in ListGroups.
    protocol_type: ClassVar[str]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        #: A new group has nothing to assign.
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self.targets: dict[str, T] = {}
        self.subscriptions: Subscriptions = {}
        # Soft.
        self.refresh_deadline = RefreshDeadline()

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name,
            group_type=self.type,
        )

    def member(self, member_id: str) -> M:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

    def may_assign(self, now_ms: int, interval_ms: int) -> bool:
        """Return whether the interval since the last target assignment has passed.

        A time in the future comes from a coordinator whose clock was ahead; it must not delay the group.
        """
        since = self.assignment_timestamp_ms
        return not 0 < since <= now_ms < since + interval_ms

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    # Changes.

    @abstractmethod
    def new_member(self, member_id: str) -> M: ...

    @abstractmethod
    def update_member(self, member: M) -> None: ...

    @abstractmethod
    def remove_member(self, member_id: str) -> None: ...

    def set_epoch(self, value: Any) -> None:
        """Apply the record of a group epoch."""
        self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    @abstractmethod
    def set_target(self, member_id: str, target: T | None) -> None:
        """Set the target of a member; None removes it."""
