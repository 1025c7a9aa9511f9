"""Groups that move between the classic and the consumer protocol while they run.

Up: the first member that joins a classic group with the consumer protocol makes it a consumer group. The
others stay as they are, with their partitions, and go on to speak the classic protocol until they are
restarted. Down: when the last member of the consumer protocol is gone, what is left becomes a classic group
again.

Both ways the records of the old group are removed and those of the new one written in one batch.
`group.consumer.migration.policy` says which ways are open.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.spec import NOTHING
from moldau.groups.classic.answers import dismiss
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember, select_protocol
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE
from moldau.groups.consumer.change import GroupChange
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ClassicSide, ConsumerMember
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from moldau.groups.migration.protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    has_user_data,
    topic_ids,
)
from moldau.protocol.errors import DecodeError
from moldau.statemachine.coordinator_records import CoordinatorRecord

log = logging.getLogger(__name__)

_UPGRADES = ("bidirectional", "upgrade")
_DOWNGRADES = ("bidirectional", "downgrade")


class Migration:
    def __init__(self, parts: ConsumerParts, rebalances: ClassicRebalances) -> None:
        self._parts = parts
        self._rebalances = rebalances

    # From classic to consumer.

    def upgrade(self, classic: ClassicGroup) -> GroupChange:
        """The change that begins by making a consumer group of a classic one, which may be empty."""
        if classic.is_empty:
            change = GroupChange(self._parts, ConsumerGroup(classic.group_id))
            change.records += classic.tombstones()
        else:
            self._check_upgrade(classic)
            change = GroupChange(self._parts, self._consumer_group(classic))
            change.records += classic.tombstones()
            change.records += _records_of(change.group)
        change.afterwards(lambda: self._dismiss(classic, change))
        log.info("group %s becomes a consumer group", classic.group_id)
        return change

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        settings = self._parts.context.settings()
        if settings.consumer_migration_policy.lower() not in _UPGRADES:
            raise _cannot_upgrade(classic, "online upgrade is disabled")
        if not classic.uses_consumer_protocol:
            raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol")
        if len(classic.members) > settings.consumer_max_size:
            raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size")

    def _consumer_group(self, classic: ClassicGroup) -> ConsumerGroup:
        group = ConsumerGroup(classic.group_id)
        group.epoch = group.assignment_epoch = classic.generation
        for member in classic.members.values():
            try:
                upgraded = self._upgraded(classic, member)
            except DecodeError as error:
                raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed") from error
            group.update_member(upgraded)
            target = {topic_id: tuple(sorted(owned)) for topic_id, owned in upgraded.assigned.items()}
            group.set_target(upgraded.member_id, target)
        group.metadata_hash = self._parts.hashes.of_topics(group.subscriptions, self._parts.context.image)
        return group

    def _upgraded(self, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
        image, generation = self._parts.context.image, classic.generation
        assignment = decode_assignment(member.assignment)
        if has_user_data(assignment):
            raise _cannot_upgrade(
                classic,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                "default assignor before re-attempting the upgrade",
            )
        subscription = decode_subscription(member.metadata(classic.protocol))
        assigned = topic_ids(assignment.assigned_partitions, image)
        return ConsumerMember(
            member.member_id,
            member_epoch=generation,
            previous_member_epoch=generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=frozenset(subscription.topics),
            assigned={topic_id: dict.fromkeys(found, generation) for topic_id, found in assigned if found},
            classic=ClassicSide(member.session_timeout_ms, member.protocols),
        )

    def _dismiss(self, classic: ClassicGroup, change: GroupChange) -> None:
        """Who waits in the classic group is sent to join the consumer group."""
        for member_id in list(classic.members):
            dismiss(classic, member_id, ErrorCode.REBALANCE_IN_PROGRESS, change.replies, member_id)
        classic.cancel_timers(self._parts.context.timers)
        for member in classic.members.values():
            self._parts.timers.heard_from(classic.group_id, member.member_id, member.session_timeout_ms)

    # From consumer to classic.

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
        classic_ones = group.classic_members - sum(each.uses_classic_protocol for each in leaving)
        return classic_ones == len(group.members) - len(leaving) > 0 and self._may_downgrade(
            group, len(group.members) - len(leaving)
        )

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether a static member that comes back with the classic protocol was the last of the other."""
        only_one = group.classic_members == len(group.members) - 1 and not replaced.uses_classic_protocol
        return only_one and self._may_downgrade(group, len(group.members))

    def _may_downgrade(self, group: ConsumerGroup, members: int) -> bool:
        settings = self._parts.context.settings()
        if settings.consumer_migration_policy.lower() not in _DOWNGRADES:
            log.info("group %s stays a consumer group: online downgrade is disabled", group.group_id)
            return False
        if members > settings.max_size:
            log.info("group %s stays a consumer group: it is too large for a classic one", group.group_id)
            return False
        return True

    def downgrade(
        self,
        change: GroupChange,
        leaving: Sequence[ConsumerMember] = (),
        joining: ConsumerMember | None = None,
        rebalance_reason: str | None = None,
    ) -> None:
        """Make a classic group of what is left; `joining` takes the place of the static member it was."""
        group, members = change.group, self._staying(change.group, leaving, joining)
        classic = ClassicGroup(group.group_id, self._parts.context.clock.time_ms())
        classic.generation = group.epoch
        for member in members.values():
            classic.add(_downgraded(member))
        classic.protocol = select_protocol(classic.members.values())
        change.records += _tombstones(group, joining)
        change.records.append(self._classic_record(group, classic, joining))
        change.afterwards(lambda: self._start(group, classic, rebalance_reason, change))
        log.info("group %s becomes a classic group", group.group_id)

    def _staying(
        self, group: ConsumerGroup, leaving: Sequence[ConsumerMember], joining: ConsumerMember | None
    ) -> dict[str, ConsumerMember]:
        gone = {each.member_id for each in leaving}
        instance_id = None if joining is None else joining.instance_id
        staying = {
            each.member_id: each
            for each in group.members.values()
            if each.member_id not in gone and (instance_id is None or each.instance_id != instance_id)
        }
        if joining is not None:
            staying[joining.member_id] = joining
        return staying

    def _classic_record(
        self, group: ConsumerGroup, classic: ClassicGroup, joining: ConsumerMember | None
    ) -> CoordinatorRecord:
        assignments: dict[str, bytes] = {}
        for member in classic.members.values():
            holder = member.member_id
            if joining is not None and holder == joining.member_id:
                holder = group.static_members.get(joining.instance_id or "", holder)
            target = group.targets.get(holder, NOTHING)
            metadata = member.metadata(classic.protocol)
            assignments[member.member_id] = encode_assignment(target, self._parts.context.image, metadata)
        return group_record(classic, classic.members.values(), assignments, classic.leader)

    def _start(
        self, group: ConsumerGroup, prepared: ClassicGroup, reason: str | None, change: GroupChange
    ) -> None:
        """The replay has made the classic group; it does not know all that its members support."""
        for member_id in (*group.members, *prepared.members):
            self._parts.timers.forget(group.group_id, member_id)
        classic = self._parts.registry.find_as(ClassicGroup, group.group_id)
        if classic is None:
            return
        for member in prepared.members.values():
            stored = classic.members[member.member_id]
            member.assignment = stored.assignment
            classic.update(stored, member)
            self._rebalances.heard_from(classic, member)
        if reason is not None:
            self._rebalances.begin(classic, reason, change.replies)


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> KafkaError:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _records_of(group: ConsumerGroup) -> list[CoordinatorRecord]:
    group_id = group.group_id
    return [
        *(member_record(group_id, member) for member in group.members.values()),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, member_id, target) for member_id, target in group.targets.items()),
        target_epoch_record(group_id, group.assignment_epoch, 0),
        *(current_record(group_id, member) for member in group.members.values()),
    ]


def _tombstones(group: ConsumerGroup, joining: ConsumerMember | None) -> list[CoordinatorRecord]:
    """For the group as earlier records of the same batch have left it: with the joining member in its
    place.
    """
    members = list(group.members)
    if joining is not None:
        replaced = group.static_members.get(joining.instance_id or "")
        members = [joining.member_id if each == replaced else each for each in members]
    return group_tombstones(group.group_id, members, group.resolved_regexes)


def _downgraded(member: ConsumerMember) -> ClassicMember:
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{member.member_id} does not use the classic protocol"
        )
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        member.classic.protocols,
    )
