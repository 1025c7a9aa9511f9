"""Members of a consumer group that still speak the classic protocol: JoinGroup, SyncGroup, Heartbeat,
LeaveGroup.

Such a member joins whenever it is told to, and hears its epoch as the generation. There is no leader: its
assignment is what the group's target gives it, one step at a time, and SyncGroup only fetches it. A heartbeat
tells it to join again when there is a step to take.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.groups.classic.member import requested_protocols
from moldau.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE
from moldau.groups.consumer.change import GroupChange, RegexStatus
from moldau.groups.consumer.checks import check_size, known_static
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ClassicSide, ConsumerMember, MemberState
from moldau.groups.consumer.partition_epochs import NOBODY
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.reconciliation import Reported
from moldau.groups.consumer.static import take_place
from moldau.groups.context import Requester
from moldau.groups.migration.classic_checks import check_protocols, check_sync, known_classic
from moldau.groups.migration.migration import Migration
from moldau.groups.migration.protocol import decode_subscription, encode_assignment, topic_ids
from moldau.protocol.errors import DecodeError
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

#: Since this version a new dynamic member has to come back with the id it is given.
_MEMBER_ID_REQUIRED_SINCE = 4


class ClassicMembers:
    def __init__(self, parts: ConsumerParts, fencing: ConsumerFencing, migration: Migration) -> None:
        self._parts = parts
        self._fencing = fencing
        self._migration = migration

    # JoinGroup.

    def join(
        self, requester: Requester, request: JoinGroupRequest, group: ConsumerGroup
    ) -> Decision[Entry, JoinGroupResponse]:
        is_unknown = not request.member_id
        member_id = request.member_id or format_uuid(random_uuid(self._parts.context.randomness))
        check_size(group, member_id, self._parts.context.settings().consumer_max_size)
        check_protocols(group, member_id, request)
        is_dynamic = request.group_instance_id is None
        if requester.api_version >= _MEMBER_ID_REQUIRED_SINCE and is_unknown and is_dynamic:
            required = JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=""
            )
            return Decision([], required)
        change = GroupChange(self._parts, group)
        member = _joining(change, request, member_id, is_unknown)
        replaced = group.static_member(request.group_instance_id)
        downgrades = replaced is not None and self._migration.may_downgrade_replacing(group, replaced)
        subscription = _subscription(request)
        updated = _updated(member, requester, request, subscription)
        changed = change.subscribe(member, updated)
        changed = change.resolve_regexes(member, updated) is not RegexStatus.UNCHANGED or changed
        change.update_metadata(member, updated, changed)
        if downgrades:
            updated = self._downgrade(change, updated, changed, subscription)
        else:
            target = change.update_target(member, updated)
            updated = change.reconcile(updated, target, changed, self._owned(subscription))
            change.afterwards(lambda: self._joined(request, member_id))
        return Decision(
            change.records, _joined_response(updated), change.then, change.replies, change.effects
        )

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Reported:
        return topic_ids(subscription.owned_partitions, self._parts.context.image)

    def _downgrade(
        self,
        change: GroupChange,
        updated: ConsumerMember,
        changed: bool,
        subscription: ConsumerProtocolSubscription,
    ) -> ConsumerMember:
        """It was the last that spoke the consumer protocol: the group is a classic one from now on."""
        group = change.group
        reason = None
        if group.assignment_epoch < change.epoch:
            reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
        else:
            target = (group.assignment_epoch, group.target_of(updated))
            updated = change.reconcile(updated, target, changed, self._owned(subscription))
        self._migration.downgrade(change, joining=updated, rebalance_reason=reason)
        return updated

    def _joined(self, request: JoinGroupRequest, member_id: str) -> None:
        timers, group_id = self._parts.timers, request.group_id
        timers.joined(group_id, member_id)
        timers.heard_from(group_id, member_id, request.session_timeout_ms)
        timers.expect_sync(group_id, member_id, request.rebalance_timeout_ms)

    # SyncGroup.

    def sync(self, request: SyncGroupRequest, group: ConsumerGroup) -> Decision[Entry, SyncGroupResponse]:
        member, classic = known_classic(group, request)
        check_sync(request, member, classic)
        if (
            group.assignment_epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._parts.timers.expect_join(group.group_id, member)
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} "
                "should rejoin to catch up.",
            )
        assigned = {topic_id: tuple(owned) for topic_id, owned in member.assigned.items()}
        metadata = classic.protocols[0].metadata
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(assigned, self._parts.context.image, metadata),
        )
        self._parts.timers.synced(group.group_id, member.member_id)
        self._parts.timers.heard_from(group.group_id, member.member_id, classic.session_timeout_ms)
        return Decision([], response)

    # Heartbeat.

    def heartbeat(
        self, request: HeartbeatRequest, group: ConsumerGroup
    ) -> Decision[Entry, HeartbeatResponse]:
        member, classic = known_classic(group, request)
        self._parts.timers.heard_from(group.group_id, member.member_id, classic.session_timeout_ms)
        if not _has_a_step_to_take(group, member):
            return Decision([], HeartbeatResponse())
        self._parts.timers.expect_join(group.group_id, member)
        return Decision([], HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    # LeaveGroup.

    def leave(self, request: LeaveGroupRequest, group: ConsumerGroup) -> Decision[Entry, LeaveGroupResponse]:
        leaving: dict[str, ConsumerMember] = {}
        answers = []
        for each in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaving(group, each)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            answers.append(
                MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
                )
            )
        return self._fencing.remove(group, list(leaving.values()), LeaveGroupResponse(members=answers))


def _joining(
    change: GroupChange, request: JoinGroupRequest, member_id: str, is_unknown: bool
) -> ConsumerMember:
    group, instance_id = change.group, request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not is_unknown:
        return known_static(group, instance_id, member_id)
    former = group.static_member(instance_id)
    return ConsumerMember(member_id) if former is None else take_place(change, former, member_id)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(bytes(request.protocols[0].metadata))
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from error


def _updated(
    member: ConsumerMember,
    requester: Requester,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=requester.client_id,
        client_host=requester.client_host,
        classic=ClassicSide(request.session_timeout_ms, requested_protocols(request)),
    )


def _joined_response(member: ConsumerMember) -> JoinGroupResponse:
    protocols = () if member.classic is None else member.classic.protocols
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocols[0].name if protocols else "",
    )


def _has_a_step_to_take(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    still_owned = (
        partition not in member.assigned.get(topic_id, {})
        and group.partition_epochs.of(topic_id, partition) != NOBODY
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )
    return not any(still_owned)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    return known_static(group, identity.group_instance_id, identity.member_id or None)
