"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Such a member rejoins whenever a heartbeat response requires it, and gets its member epoch as the generation.
No member is the leader: the assignment follows from the group's target, one reconciliation step at a time,
and SyncGroup only fetches it.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.groups.classic.member import requested_protocols
from moldau.groups.classic.responses import sync_error
from moldau.groups.consumer.checks import check_instance, check_size, get_static_member
from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.group_update import GroupUpdate, RegexUpdate
from moldau.groups.consumer.member import ClassicMetadata, ConsumerMember, MemberState
from moldau.groups.consumer.partition_epochs import NO_OWNER
from moldau.groups.consumer.reconciliation import OwnedByClient
from moldau.groups.context import Requester
from moldau.groups.embedded_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    decode_subscription,
    encode_assignment,
    topic_ids,
)
from moldau.groups.migration.conversion import GroupConversion
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

#: The version from which a new dynamic member must join again with the id it is given (KIP-394).
_MEMBER_ID_REQUIRED_SINCE = 4


class ClassicMembers:
    def __init__(
        self, context: ConsumerContext, fencing: ConsumerFencing, conversion: GroupConversion
    ) -> None:
        self._context = context
        self._fencing = fencing
        self._conversion = conversion

    # JoinGroup.

    def join(
        self, requester: Requester, request: JoinGroupRequest, group: ConsumerGroup
    ) -> Decision[Entry, JoinGroupResponse]:
        is_unknown = not request.member_id
        member_id = request.member_id or format_uuid(random_uuid(self._context.group_context.randomness))
        check_size(group, member_id, self._context.group_context.settings().consumer_max_size)
        _check_protocols(group, member_id, request)
        is_dynamic = request.group_instance_id is None
        if requester.api_version >= _MEMBER_ID_REQUIRED_SINCE and is_unknown and is_dynamic:
            required = JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=""
            )
            return Decision([], required)
        update = GroupUpdate(self._context, group)
        member = _joining_member(update, request, member_id, is_unknown)
        replaced = group.static_member(request.group_instance_id)
        downgrades = replaced is not None and self._conversion.may_downgrade_replacing(group, replaced)
        subscription = _subscription(request)
        updated = _updated(member, requester, request, subscription)
        changed = update.update_subscription(member, updated)
        regex = update.update_regex(requester, member, updated)
        changed = changed or regex is not RegexUpdate.UNCHANGED
        update.update_metadata(member, updated, changed)
        if downgrades:
            updated = self._downgrade(update, updated, changed, subscription)
        else:
            target = update.update_target(member, updated)
            updated = update.reconcile(updated, target, changed, self._owned(subscription))
            update.once_appended(lambda: self._joined(request, member_id))
        return update.build(_joined_response(updated))

    def _owned(self, subscription: ConsumerProtocolSubscription) -> OwnedByClient:
        return topic_ids(subscription.owned_partitions, self._context.group_context.image)

    def _downgrade(
        self,
        update: GroupUpdate,
        updated: ConsumerMember,
        changed: bool,
        subscription: ConsumerProtocolSubscription,
    ) -> ConsumerMember:
        """Convert the group to classic: the last member of the consumer protocol was replaced."""
        group = update.group
        reason = None
        if group.assignment_epoch < update.epoch:
            reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
        else:
            target = (group.assignment_epoch, group.target_of(updated))
            updated = update.reconcile(updated, target, changed, self._owned(subscription))
        self._conversion.downgrade(update, joining=updated, rebalance_reason=reason)
        return updated

    def _joined(self, request: JoinGroupRequest, member_id: str) -> None:
        timers, group_id = self._context.timers, request.group_id
        timers.cancel_join_timeout(group_id, member_id)
        timers.restart_session(group_id, member_id, request.session_timeout_ms)
        timers.schedule_sync_timeout(group_id, member_id, request.rebalance_timeout_ms)

    # SyncGroup.

    def sync(self, request: SyncGroupRequest, group: ConsumerGroup) -> Decision[Entry, SyncGroupResponse]:
        member, classic = _classic_member(group, request)
        _check_sync(request, member, classic)
        if (
            group.assignment_epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            return Decision(
                [],
                sync_error(ErrorCode.REBALANCE_IN_PROGRESS),
                lambda: self._context.timers.schedule_join_timeout(group.group_id, member),
            )
        assigned = {topic_id: tuple(owned) for topic_id, owned in member.assigned.items()}
        metadata = classic.protocols[0].metadata
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(assigned, self._context.group_context.image, metadata),
        )

        def synced() -> None:
            self._context.timers.cancel_sync_timeout(group.group_id, member.member_id)
            self._restart_session(group, member, classic)

        return Decision([], response, synced)

    # Heartbeat.

    def heartbeat(
        self, request: HeartbeatRequest, group: ConsumerGroup
    ) -> Decision[Entry, HeartbeatResponse]:
        member, classic = _classic_member(group, request)
        if not _must_rejoin(group, member):
            return Decision([], HeartbeatResponse(), lambda: self._restart_session(group, member, classic))

        def expect_rejoin() -> None:
            self._restart_session(group, member, classic)
            self._context.timers.schedule_join_timeout(group.group_id, member)

        return Decision([], HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), expect_rejoin)

    def _restart_session(
        self, group: ConsumerGroup, member: ConsumerMember, classic: ClassicMetadata
    ) -> None:
        self._context.timers.restart_session(group.group_id, member.member_id, classic.session_timeout_ms)

    # LeaveGroup.

    def leave(self, request: LeaveGroupRequest, group: ConsumerGroup) -> Decision[Entry, LeaveGroupResponse]:
        leaving: dict[str, ConsumerMember] = {}
        results = []
        for each in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaving_member(group, each)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            results.append(
                MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
                )
            )
        return self._fencing.remove(group, list(leaving.values()), LeaveGroupResponse(members=results))


def _joining_member(
    update: GroupUpdate, request: JoinGroupRequest, member_id: str, is_unknown: bool
) -> ConsumerMember:
    group, instance_id = update.group, request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not is_unknown:
        return get_static_member(group, instance_id, member_id)
    former = group.static_member(instance_id)
    return ConsumerMember(member_id) if former is None else update.replace_static_member(former, member_id)


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
        classic=ClassicMetadata(request.session_timeout_ms, requested_protocols(request)),
    )


def _joined_response(member: ConsumerMember) -> JoinGroupResponse:
    protocols = () if member.classic is None else member.classic.protocols
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocols[0].name if protocols else "",
    )


def _must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    still_owned = (
        partition not in member.assigned.get(topic_id, {})
        and group.partition_epochs.of(topic_id, partition) != NO_OWNER
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )
    return not any(still_owned)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    return get_static_member(group, identity.group_instance_id, identity.member_id or None)


def _check_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    supported = any(
        group.classic_protocols.get(each.name, 0) == group.classic_members for each in request.protocols
    )
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
        )


def _classic_member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[ConsumerMember, ClassicMetadata]:
    """Return the requesting member, which must use the classic protocol and send its current epoch."""
    instance_id, generation = request.group_instance_id, request.generation_id
    if instance_id is None:
        member = group.member(request.member_id)
    else:
        known = group.static_member(instance_id)
        if known is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        check_instance(known, request.member_id, instance_id)
        member = known
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
        )
    if generation != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.member_epoch} "
            f"of member {member.member_id}.",
        )
    return member, member.classic


def _check_sync(request: SyncGroupRequest, member: ConsumerMember, classic: ClassicMetadata) -> None:
    name = classic.protocols[0].name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal "
            f"to the group protocol type {CONSUMER_PROTOCOL_TYPE}.",
        )
    if request.protocol_name not in (None, name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal "
            f"to the protocol name {name} returned in the join response.",
        )
