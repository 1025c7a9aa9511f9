"""A classic group: its members, its generation and its state.

A group is stored as one GroupMetadata record, written when the leader has assigned and when the last member
has left; `replay` restores the group from such a record. The fields marked soft are not stored: pending
requests, members that must join with a member id, and members that have yet to send SyncGroup.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.member import ClassicMember, select_protocol, subscribed_topics
from moldau.groups.classic.states import CLASSIC_TRANSITIONS, ClassicEvent, ClassicState
from moldau.groups.embedded_protocol import CONSUMER_PROTOCOL_TYPE
from moldau.groups.group import CLASSIC, BaseTimestamp, CheckPartition
from moldau.groups.timer_keys import heartbeat_key, join_key, sync_key
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.protocol.stored.classic_groups import GroupMetadataKey, GroupMetadataValue
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.decision import Promise
from moldau.statemachine.timers import Timers


class ClassicGroup:
    type: ClassVar[str] = CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        #: The time of the last transition; -1 if an old release did not store it.
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        #: In the order they joined.
        self.members: dict[str, ClassicMember] = {}
        #: Member ids of static members, by instance id.
        self.static_members: dict[str, str] = {}
        #: None if unknown.
        self.subscribed_topics: frozenset[str] | None = None
        self._supporters: Counter[str] = Counter()
        # Soft.
        self.awaiting_join: dict[str, Promise[JoinGroupResponse]] = {}
        self.awaiting_sync: dict[str, Promise[SyncGroupResponse]] = {}
        self.pending_join: set[str] = set()
        self.pending_sync: set[str] = set()
        self.new_member_added = False

    # Queries.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == len(self.awaiting_join) and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((0, *(each.rebalance_timeout_ms for each in self.members.values())))

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.type,
        )

    def has_room_for(self, member_id: str, max_size: int) -> bool:
        """Return whether `group.max.size` allows a member to join; current members always may."""
        if self.state in (ClassicState.EMPTY, ClassicState.DEAD):
            return True
        if self.state is ClassicState.PREPARING_REBALANCE:
            return member_id in self.awaiting_join or len(self.awaiting_join) < max_size
        return member_id in self.members or len(self.members) < max_size

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        """Return whether all members support one of the protocols `names`."""
        if self.is_empty:
            return bool(protocol_type and names)
        members = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == members for name in names
        )

    # Checks with Kafka's errors, in Kafka's order.

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        api_version: int,
        *,
        transactional: bool,
    ) -> CheckPartition | None:
        if generation < 0 and self.is_empty:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow every client."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expiration(self) -> BaseTimestamp | None:
        if self.protocol_type is None:
            return lambda committed: committed.commit_timestamp_ms
        if self.is_empty:
            since = self.state_timestamp_ms
            return lambda committed: committed.commit_timestamp_ms if since == -1 else since
        if self.subscribed_topics is not None and self.state is ClassicState.STABLE:
            return lambda committed: committed.commit_timestamp_ms
        return None

    # Changes.

    def replay(self, value: GroupMetadataValue) -> None:
        """Restore the group from its record; known members keep the protocols that are not stored."""
        protocol_type = value.protocol_type or None
        members: dict[str, ClassicMember] = {}
        for each in value.members:
            member = ClassicMember.from_stored(each, value.protocol_type, value.protocol)
            known = self.members.get(each.member_id)
            if known is not None and member.protocols[0] in known.protocols:
                member.protocols = known.protocols
            members[each.member_id] = member
        event = ClassicEvent.MEMBERS_STORED if members else ClassicEvent.EMPTY_STORED
        self.transition(event, value.current_state_timestamp)
        self.generation = value.generation
        self.protocol_type, self.protocol = protocol_type, value.protocol
        self.leader = value.leader
        self.members = members
        self.static_members = {
            each.instance_id: each.member_id for each in members.values() if each.instance_id is not None
        }
        self._supporters = Counter(name for each in members.values() for name in each.protocol_names)
        self.pending_sync.intersection_update(members)
        self._update_subscribed_topics()

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._supporters.update(member.protocol_names)
        self.pending_join.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(member.protocol_names)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(self, member: ClassicMember, changed: ClassicMember) -> None:
        """Replace `member`, which may have had another member id, and keep its position."""
        self._supporters.subtract(member.protocol_names)
        self._supporters.update(changed.protocol_names)
        if changed.member_id == member.member_id:
            self.members[member.member_id] = changed
        else:
            members = (changed if known is member else known for known in self.members.values())
            self.members = {each.member_id: each for each in members}
        if changed.instance_id is not None:
            self.static_members[changed.instance_id] = changed.member_id
        if self.leader == member.member_id:
            self.leader = changed.member_id

    def transition(self, event: ClassicEvent, now_ms: int) -> None:
        state = CLASSIC_TRANSITIONS.after(self.state, event)
        self.previous_state, self.state, self.state_timestamp_ms = self.state, state, now_ms

    def next_generation(self, now_ms: int) -> None:
        """Complete the join phase: select the protocol and wait for the leader's assignment."""
        self.generation += 1
        self.protocol = select_protocol(self.members.values())
        self._update_subscribed_topics()
        self.transition(ClassicEvent.COMPLETE_JOIN, now_ms)
        self.pending_sync = set(self.members)

    def _update_subscribed_topics(self) -> None:
        self.subscribed_topics = subscribed_topics(
            self.group_id, self.protocol_type, self.protocol, self.members.values()
        )

    # Removal.

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def cancel_timers(self, timers: Timers) -> None:
        timers.cancel(join_key(self.group_id))
        timers.cancel(sync_key(self.group_id))
        for member_id in (*self.members, *self.pending_join):
            timers.cancel(heartbeat_key(self.group_id, member_id))
