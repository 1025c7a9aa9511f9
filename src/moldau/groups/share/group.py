"""A share group: its members, their target assignment and its initialized partitions."""

from __future__ import annotations

from typing import ClassVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.spec import Assignment
from moldau.groups.group import SHARE, BaseTimestamp, CheckPartition
from moldau.groups.modern.group import ModernGroup
from moldau.groups.modern.subscription import count_names, is_homogeneous
from moldau.groups.share.member import ShareMember
from moldau.groups.share.records import group_tombstones
from moldau.groups.share.topics import ShareStateTopics
from moldau.groups.timer_keys import session_timeout_key
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers

_EMPTY = "Empty"
_STABLE = "Stable"


class ShareGroup(ModernGroup[ShareMember, Assignment]):
    type: ClassVar[str] = SHARE
    protocol_type: ClassVar[str] = SHARE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        #: None before the first partition is initialized.
        self.topics: ShareStateTopics | None = None

    # Queries.

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous({}, self.subscriptions, len(self.members))

    # Checks with Kafka's errors: a share group has no committed offsets.

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        api_version: int,
        *,
        transactional: bool,
    ) -> CheckPartition | None:
        raise self._not_a_consumer_group()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._not_a_consumer_group()

    def check_offset_delete(self) -> None:
        raise self._not_a_consumer_group()

    def _not_a_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def offset_expiration(self) -> BaseTimestamp | None:
        return None

    # Changes.

    def new_member(self, member_id: str) -> ShareMember:
        return ShareMember(member_id)

    def update_member(self, member: ShareMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            count_names(self.subscriptions, old.subscribed_topic_names, -1)
        self.members[member.member_id] = member
        count_names(self.subscriptions, member.subscribed_topic_names, 1)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            count_names(self.subscriptions, member.subscribed_topic_names, -1)

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        self.targets.pop(member_id, None)
        if target is not None:
            self.targets[member_id] = target

    # Removal.

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            timers.cancel(session_timeout_key(self.group_id, member_id))
