"""What consumer and share groups have in common: the coordinator itself computes what each member is to have.

Three epochs tell where such a group stands. The group's own rises with every change of members, subscriptions
or topics; the target assignment carries the group's epoch it was computed for; and each member has the epoch
of the target it has come to. All of it comes from stored records, but for the fields marked soft.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.spec import Assignment
from moldau.groups.group import Group
from moldau.groups.modern.subscription import Subscriptions
from moldau.protocol.messages.list_groups import ListedGroup


class RefreshDeadline(NamedTuple):
    """When the subscribed topics have to be looked at again, unless the group has lost that epoch."""

    time_ms: int = 0
    epoch: int = 0


class ModernMember(Protocol):
    """Immutable; what is stored of a member makes a new one of the old."""

    @property
    def member_id(self) -> str: ...

    def with_subscription(self, value: Any) -> Self: ...

    def with_assignment(self, value: Any) -> Self: ...

    def gone(self) -> Self: ...


M = TypeVar("M", bound=ModernMember)


class ModernGroup(Group, Generic[M]):
    type: ClassVar[str]
    #: What lists of groups say.
    protocol_type: ClassVar[str]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        #: A group that is new has nothing to assign yet.
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self.targets: dict[str, Assignment] = {}
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

    @abstractmethod
    def set_target(self, member_id: str, target: Assignment | None) -> None:
        """What the member is to have; None when it is no longer to have anything."""
