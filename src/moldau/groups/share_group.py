"""A share group: its members, their target assignment, and the partitions it has state for.

Everything here comes from stored records, through `share_replay`, but for the fields marked soft.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.spec import Assignment
from moldau.groups.consumer_group import RefreshDeadline
from moldau.groups.consumer_timer_keys import session_key
from moldau.groups.group import SHARE, BaseTimestamp, CheckPartition
from moldau.groups.share_member import ShareMember
from moldau.groups.share_records import group_tombstones
from moldau.groups.share_topics import ShareTopics
from moldau.groups.subscription import Subscriptions, count_names, is_homogeneous
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers

_EMPTY = "Empty"
_STABLE = "Stable"


class ShareGroup:
    type: ClassVar[str] = SHARE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.subscriptions: Subscriptions = {}
        #: None until the first partition is to have state.
        self.topics: ShareTopics | None = None
        # Soft.
        self.refresh_deadline = RefreshDeadline()

    # What others ask.

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous({}, self.subscriptions, len(self.members))

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=SHARE,
            group_state=self.state_name,
            group_type=self.type,
        )

    def member(self, member_id: str) -> ShareMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

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

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expiration(self) -> BaseTimestamp | None:
        return None

    # Changes.

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

    # Records.

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            timers.cancel(session_key(self.group_id, member_id))
