"""A classic group: its members, its generation and where it stands between two rebalances.

What is stored of a group is one record with everything, written whenever the group comes to rest: with
members once their leader has assigned, or without. `adopt` makes the group what such a record says. Between
two records the group moves through a rebalance in memory only, so a coordinator that takes over begins with
the last generation that came to rest, as in Kafka.

The fields marked soft are never stored: who waits for which answer, who was told to come back with a member
id, and who has yet to ask for its assignment.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import ClassVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.member import ClassicMember, select_protocol
from moldau.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from moldau.groups.classic.timers import heartbeat_key, join_key, sync_key
from moldau.groups.group import CLASSIC, BaseTimestamp, CheckPartition
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.protocol.stored.classic_groups import GroupMetadataKey, GroupMetadataValue
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.decision import Promise
from moldau.statemachine.timers import Timers


class ClassicState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


#: Where a rebalance may begin.
CAN_REBALANCE = frozenset({ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY})


class ClassicGroup:
    type: ClassVar[str] = CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        #: When it came to the state it is in; -1 when an old release did not store it.
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        #: In the order they joined.
        self.members: dict[str, ClassicMember] = {}
        #: Member ids of static members, by instance id.
        self.static_members: dict[str, str] = {}
        #: None when it cannot be told.
        self.subscribed_topics: frozenset[str] | None = None
        self._supporters: Counter[str] = Counter()
        # Soft.
        self.joining: dict[str, Promise[JoinGroupResponse]] = {}
        self.syncing: dict[str, Promise[SyncGroupResponse]] = {}
        self.pending_join: set[str] = set()
        self.pending_sync: set[str] = set()
        self.new_member_added = False

    # What others ask.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == len(self.joining) and not self.pending_join

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

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        """Whether a member with these protocols fits in."""
        if self.is_empty:
            return bool(protocol_type and names)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == everybody for name in names
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
        """Anybody may."""

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

    def adopt(self, value: GroupMetadataValue) -> None:
        """Become what a stored record says; members that are here already keep what is not stored."""
        protocol_type = value.protocol_type or None
        members: dict[str, ClassicMember] = {}
        for each in value.members:
            member = ClassicMember.from_stored(each, value.protocol_type, value.protocol)
            known = self.members.get(each.member_id)
            if known is not None and member.protocols[0] in known.protocols:
                member.protocols = known.protocols
            members[each.member_id] = member
        self.previous_state = self.state
        self.state = ClassicState.STABLE if members else ClassicState.EMPTY
        self.state_timestamp_ms = value.current_state_timestamp
        self.generation = value.generation
        self.protocol_type, self.protocol = protocol_type, value.protocol
        self.leader = value.leader
        self.members = members
        self.static_members = {
            each.instance_id: each.member_id for each in members.values() if each.instance_id is not None
        }
        self._supporters = Counter(name for each in members.values() for name in each.protocol_names)
        self.pending_sync.intersection_update(members)
        self._learn_subscriptions()

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
        """Put `changed` in the place of `member`, which may have had another member id."""
        self._supporters.subtract(member.protocol_names)
        self._supporters.update(changed.protocol_names)
        if changed.member_id == member.member_id:
            self.members[member.member_id] = changed
        else:
            staying = (changed if known is member else known for known in self.members.values())
            self.members = {each.member_id: each for each in staying}
        if changed.instance_id is not None:
            self.static_members[changed.instance_id] = changed.member_id
        if self.leader == member.member_id:
            self.leader = changed.member_id

    def transition(self, state: ClassicState, now_ms: int) -> None:
        self.previous_state, self.state, self.state_timestamp_ms = self.state, state, now_ms

    def next_generation(self, now_ms: int) -> None:
        """All members that stay have joined: choose how they assign, and wait for their leader."""
        self.generation += 1
        self.protocol = select_protocol(self.members.values())
        self._learn_subscriptions()
        self.transition(ClassicState.COMPLETING_REBALANCE, now_ms)
        self.pending_sync = set(self.members)

    def _learn_subscriptions(self) -> None:
        self.subscribed_topics = subscribed_topics(
            self.group_id, self.protocol_type, self.protocol, self.members.values()
        )

    # Records.

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def cancel_timers(self, timers: Timers) -> None:
        timers.cancel(join_key(self.group_id))
        timers.cancel(sync_key(self.group_id))
        for member_id in (*self.members, *self.pending_join):
            timers.cancel(heartbeat_key(self.group_id, member_id))
