"""A consumer group: its members, their target assignment and the state of reconciliation.

The group is stable when its three epochs (see `modern/group.py`) agree. All state comes from replayed
records; counts and indexes avoid iterating over all members in each decision. The fields marked soft are not
stored.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from moldau.base.ids import TopicId
from moldau.groups.assignors.java_order import strings_in_hash_order
from moldau.groups.assignors.spec import NOTHING, Assignment
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.offset_checks import check_commit, check_fetch
from moldau.groups.consumer.partition_epochs import PartitionEpochs
from moldau.groups.consumer.records import group_tombstones
from moldau.groups.embedded_protocol import CONSUMER_PROTOCOL_TYPE
from moldau.groups.group import CONSUMER, BaseTimestamp, CheckPartition
from moldau.groups.modern.group import ModernGroup
from moldau.groups.modern.regex import ResolvedRegex
from moldau.groups.modern.subscription import count, count_names, count_regex
from moldau.groups.timer_keys import consumer_member_keys
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ModernGroup[ConsumerMember, Assignment]):
    type: ClassVar[str] = CONSUMER
    protocol_type: ClassVar[str] = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        #: Member ids by instance id.
        self.static_members: dict[str, str] = {}
        #: Member ids by partition of the target assignment.
        self.target_owners: dict[TopicId, dict[int, str]] = {}
        self.partition_epochs = PartitionEpochs()
        #: The number of members by subscribed regular expression.
        self.regexes: dict[str, int] = {}
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.server_assignors: dict[str, int] = {}
        self.classic_members = 0
        #: The number of members that use the classic protocol, by supported protocol name.
        self.classic_protocols: dict[str, int] = {}
        #: Whether a release before 4.1 has left an obsolete record.
        self.has_subscription_metadata_record = False
        # Soft.
        self.resolving_regexes = False

    # Queries.

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        reconciled = all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values())
        return ConsumerState.STABLE if reconciled else ConsumerState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def target_of(self, member: ConsumerMember) -> Assignment:
        """Return the target of a member; a rejoining static member inherits the target of its instance id."""
        if member.instance_id is None:
            return self.targets.get(member.member_id, NOTHING)
        return self.targets.get(self.static_members.get(member.instance_id, ""), NOTHING)

    def preferred_assignor(self, old: ConsumerMember | None, new: ConsumerMember | None) -> str | None:
        """Return the assignor with most votes after replacing `old` by `new`; None without any vote."""
        votes = dict(self.server_assignors)
        count(votes, None if old is None else old.server_assignor, -1)
        count(votes, None if new is None else new.server_assignor, 1)
        most = max(votes.values(), default=0)
        # Ties are broken as in Kafka: the last one in the order of Java's HashMap wins.
        return next((name for name in reversed(strings_in_hash_order(votes)) if votes[name] == most), None)

    # Checks with Kafka's errors, in Kafka's order.

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        api_version: int,
        *,
        transactional: bool,
    ) -> CheckPartition | None:
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        return check_commit(self.member(member_id), generation, api_version, transactional)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_delete(self) -> None:
        """Allow it; subscribed topics are refused one by one."""

    def offset_expiration(self) -> BaseTimestamp | None:
        return lambda committed: committed.commit_timestamp_ms

    # Changes.

    def new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id)

    def update_member(self, member: ConsumerMember) -> None:
        self._count(self.members.get(member.member_id), member)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._count(member, None)
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        self.partition_epochs.update(old, new)
        for member, change in ((old, -1), (new, 1)):
            if member is None:
                continue
            count_names(self.subscriptions, member.subscribed_topic_names, change)
            count(self.regexes, member.regex, change)
            count(self.server_assignors, member.server_assignor, change)
            if member.classic is not None:
                self.classic_members += change
                for protocol in member.classic.protocols:
                    count(self.classic_protocols, protocol.name, change)

    def set_target(self, member_id: str, target: Assignment | None) -> None:
        old = self.targets.pop(member_id, NOTHING)
        for topic_id, partitions in old.items():
            owners = self.target_owners.get(topic_id, {})
            for partition in partitions:
                # A rejoined static member may own it under its new member id.
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.target_owners.pop(topic_id, None)
        if target is not None:
            self.targets[member_id] = target
            for topic_id, partitions in target.items():
                self.target_owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def set_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        old = self.resolved_regexes.pop(regex, None)
        if old is not None:
            count_regex(self.subscriptions, old.topics, -1)
        if resolved is not None:
            self.resolved_regexes[regex] = resolved
            count_regex(self.subscriptions, resolved.topics, 1)

    # Removal.

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.resolved_regexes)

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            for key in consumer_member_keys(self.group_id, member_id):
                timers.cancel(key)
