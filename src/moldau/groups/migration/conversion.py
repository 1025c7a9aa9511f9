"""Online conversion of groups between the classic and the consumer protocol (KIP-848).

Upgrade: the first member that joins a classic group with the consumer protocol makes it a consumer group. The
other members keep their partitions and the classic protocol until they are restarted. Downgrade: when the
last member with the consumer protocol leaves, the group becomes a classic group again.

Both replace the records of the old group by those of the new one in one batch.
`group.consumer.migration.policy` enables each direction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.spec import NOTHING
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember, select_protocol
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.responses import fail_pending
from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.group_update import GroupUpdate
from moldau.groups.consumer.member import ClassicMetadata, ConsumerMember
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from moldau.groups.embedded_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    has_user_data,
    topic_ids,
)
from moldau.protocol.errors import DecodeError
from moldau.statemachine.coordinator_records import CoordinatorRecord

logger = logging.getLogger(__name__)

_UPGRADES = ("bidirectional", "upgrade")
_DOWNGRADES = ("bidirectional", "downgrade")


class GroupConversion:
    def __init__(self, context: ConsumerContext, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._rebalances = rebalances

    # Upgrade.

    def upgrade(self, classic: ClassicGroup) -> GroupUpdate:
        """Start an update that replaces a classic group, which may be empty, by a consumer group."""
        if classic.is_empty:
            update = GroupUpdate(self._context, ConsumerGroup(classic.group_id))
            update.records += classic.tombstones()
        else:
            self._check_upgrade(classic)
            update = GroupUpdate(self._context, self._consumer_group(classic))
            update.records += classic.tombstones()
            update.records += _records_of(update.group)
        update.once_appended(lambda: self._end_classic_group(classic, update))
        logger.info("upgrading group %s to a consumer group", classic.group_id)
        return update

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        settings = self._context.group_context.settings()
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
        group.metadata_hash = self._context.hashes.of_topics(
            group.subscriptions, self._context.group_context.image
        )
        return group

    def _upgraded(self, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
        image, generation = self._context.group_context.image, classic.generation
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
            classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        )

    def _end_classic_group(self, classic: ClassicGroup, update: GroupUpdate) -> None:
        """Make waiting members rejoin, and replace the timers of the classic group."""
        for member_id in list(classic.members):
            fail_pending(classic, member_id, ErrorCode.REBALANCE_IN_PROGRESS, update.replies, member_id)
        classic.cancel_timers(self._context.group_context.timers)
        for member in classic.members.values():
            self._context.timers.restart_session(
                classic.group_id, member.member_id, member.session_timeout_ms
            )

    # Downgrade.

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
        classic_members = group.classic_members - sum(each.uses_classic_protocol for each in leaving)
        return classic_members == len(group.members) - len(leaving) > 0 and self._may_downgrade(
            group, len(group.members) - len(leaving)
        )

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether a static member that rejoins with the classic protocol permits a downgrade."""
        is_last = group.classic_members == len(group.members) - 1 and not replaced.uses_classic_protocol
        return is_last and self._may_downgrade(group, len(group.members))

    def _may_downgrade(self, group: ConsumerGroup, members: int) -> bool:
        settings = self._context.group_context.settings()
        if settings.consumer_migration_policy.lower() not in _DOWNGRADES:
            logger.info("group %s is not downgraded: online downgrade is disabled", group.group_id)
            return False
        if members > settings.max_size:
            logger.info("group %s is not downgraded: it exceeds group.max.size", group.group_id)
            return False
        return True

    def downgrade(
        self,
        update: GroupUpdate,
        leaving: Sequence[ConsumerMember] = (),
        joining: ConsumerMember | None = None,
        rebalance_reason: str | None = None,
    ) -> None:
        """Replace the group by a classic one; `joining` replaces the static member with its instance id."""
        group, members = update.group, _remaining_members(update.group, leaving, joining)
        classic = ClassicGroup(group.group_id, self._context.group_context.clock.time_ms())
        classic.generation = group.epoch
        for member in members.values():
            classic.add(_downgraded(member))
        classic.protocol = select_protocol(classic.members.values())
        update.records += _tombstones(group, joining)
        update.records.append(self._classic_record(group, classic, joining))
        update.once_appended(lambda: self._start(group, classic, rebalance_reason, update))
        logger.info("downgrading group %s to a classic group", group.group_id)

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
            assignments[member.member_id] = encode_assignment(
                target, self._context.group_context.image, metadata
            )
        return group_record(classic, classic.members.values(), assignments, classic.leader)

    def _start(
        self, group: ConsumerGroup, prepared: ClassicGroup, reason: str | None, update: GroupUpdate
    ) -> None:
        """Complete the replayed classic group: its record lacks the protocols of the members."""
        for member_id in (*group.members, *prepared.members):
            self._context.timers.cancel_all(group.group_id, member_id)
        classic = self._context.registry.find_as(ClassicGroup, group.group_id)
        if classic is None:
            return
        for member in prepared.members.values():
            stored = classic.members[member.member_id]
            member.assignment = stored.assignment
            classic.update(stored, member)
            self._rebalances.restart_session(classic, member)
        if reason is not None:
            self._rebalances.prepare(classic, reason, update.replies)


def _remaining_members(
    group: ConsumerGroup, leaving: Sequence[ConsumerMember], joining: ConsumerMember | None
) -> dict[str, ConsumerMember]:
    left = {each.member_id for each in leaving}
    instance_id = None if joining is None else joining.instance_id
    remaining = {
        each.member_id: each
        for each in group.members.values()
        if each.member_id not in left and (instance_id is None or each.instance_id != instance_id)
    }
    if joining is not None:
        remaining[joining.member_id] = joining
    return remaining


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
    """Remove the group as earlier records of the same batch have left it: with the joining member."""
    members = list(group.members)
    if joining is not None:
        replaced = group.static_members.get(joining.instance_id or "")
        members = [joining.member_id if each == replaced else each for each in members]
    return group_tombstones(group.group_id, members, group.resolved_regexes)


def _downgraded(member: ConsumerMember) -> ClassicMember:
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Member {member.member_id} does not use the classic protocol."
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
