"""ConsumerGroupHeartbeat (KIP-848): joining, reporting owned partitions, assignment and leaving.

A member joins with epoch 0 and leaves with -1. A static member leaves temporarily with -2 (KIP-345): its
partitions are kept for a member that joins with the same instance id before the session expires.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.checks import (
    check_epoch,
    check_released,
    check_size,
    get_static_member,
)
from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.group_update import GroupUpdate, RegexUpdate
from moldau.groups.consumer.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerMember,
)
from moldau.groups.consumer.reconciliation import OwnedByClient
from moldau.groups.consumer.records import current_record
from moldau.groups.context import Requester
from moldau.groups.migration.conversion import GroupConversion
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)


class ConsumerHeartbeats:
    def __init__(
        self, context: ConsumerContext, fencing: ConsumerFencing, conversion: GroupConversion
    ) -> None:
        self._context = context
        self._fencing = fencing
        self._conversion = conversion

    def heartbeat(
        self, requester: Requester, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        """Serve a request that has passed `check_request`."""
        if request.member_epoch in (LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH):
            return self._leave(request)
        update = self._update(request)
        context = self._context.group_context
        check_size(update.group, request.member_id, context.settings().consumer_max_size)
        member_id = request.member_id or format_uuid(random_uuid(context.randomness))
        member = self._member(update, request, member_id)
        updated = self._advance(
            update, requester, member, _updated(member, requester, request), _owned(request)
        )
        group_id = request.group_id
        timeout_ms = self._context.session_timeout_ms(group_id)
        update.once_appended(lambda: self._context.timers.restart_session(group_id, member_id, timeout_ms))
        return update.build(self._response(request, member, updated))

    # The group and the member.

    def _update(self, request: ConsumerGroupHeartbeatRequest) -> GroupUpdate:
        """Start the update of the group; a joining member may create it or upgrade a classic group."""
        group_id, joins = request.group_id, request.member_epoch == 0
        group = self._context.registry.find(group_id)
        if group is None and not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if isinstance(group, ConsumerGroup):
            return GroupUpdate(self._context, group)
        if group is None:
            return GroupUpdate(self._context, ConsumerGroup(group_id))
        if not joins or not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return self._conversion.upgrade(group)

    def _member(
        self, update: GroupUpdate, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> ConsumerMember:
        group, joins = update.group, request.member_epoch == 0
        if request.instance_id is None:
            known = group.members.get(member_id)
            member = known or (ConsumerMember(member_id) if joins else group.member(member_id))
            check_epoch(member, request.member_epoch, _owned(request))
            return member
        if not joins:
            member = get_static_member(group, request.instance_id, member_id)
            check_epoch(member, request.member_epoch, _owned(request))
            return member
        former = group.static_member(request.instance_id)
        if former is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not former.uses_classic_protocol:
            check_released(former, member_id, request.instance_id)
        return update.replace_static_member(former, member_id)

    def _advance(
        self,
        update: GroupUpdate,
        requester: Requester,
        member: ConsumerMember,
        updated: ConsumerMember,
        owned: OwnedByClient,
    ) -> ConsumerMember:
        names_changed = update.update_subscription(member, updated)
        regex = update.update_regex(requester, member, updated)
        bump = names_changed or regex is RegexUpdate.CHANGED_AND_RESOLVED
        update.update_metadata(member, updated, bump)
        target = update.update_target(member, updated)
        subscription_changed = names_changed or regex is not RegexUpdate.UNCHANGED
        return update.reconcile(updated, target, subscription_changed, owned)

    def _response(
        self, request: ConsumerGroupHeartbeatRequest, member: ConsumerMember, updated: ConsumerMember
    ) -> ConsumerGroupHeartbeatResponse:
        """Include the assignment if the member joins, sends a full heartbeat, or has a new assignment."""
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        includes_assignment = request.member_epoch == 0 or is_full or member.assigned != updated.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._context.heartbeat_interval_ms(request.group_id),
            assignment=_assignment(updated) if includes_assignment else None,
        )

    # Leaving.

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        group = self._context.registry.get_as(ConsumerGroup, request.group_id, "consumer")
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = get_static_member(group, request.instance_id, request.member_id)
            if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
                return self._leave_temporarily(group, member, response)
        logger.info("%s leaves group %s", member.member_id, group.group_id)
        return self._fencing.remove(group, [member], response)

    def _leave_temporarily(
        self, group: ConsumerGroup, member: ConsumerMember, response: ConsumerGroupHeartbeatResponse
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        leaving = replace(
            member,
            member_epoch=LEAVE_GROUP_STATIC_EPOCH,
            pending_revocation=NO_PARTITIONS,
            assigned={topic_id: dict.fromkeys(owned, 0) for topic_id, owned in member.assigned.items()},
        )
        logger.info("static member %s leaves group %s temporarily", member.instance_id, group.group_id)
        return Decision([current_record(group.group_id, leaving)], response)


def _updated(
    member: ConsumerMember, requester: Requester, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    """Apply the fields of a request; those that are null or -1 stay unchanged."""
    fields: dict[str, Any] = {"client_id": requester.client_id, "client_host": requester.client_host}
    if request.instance_id is not None:
        fields["instance_id"] = request.instance_id
    if request.rack_id is not None:
        fields["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        fields["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        fields["server_assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        fields["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        fields["subscribed_topic_regex"] = request.subscribed_topic_regex
    return replace(member, classic=None, **fields)


def _owned(request: ConsumerGroupHeartbeatRequest) -> OwnedByClient:
    if request.topic_partitions is None:
        return None
    return [(each.topic_id, each.partitions) for each in request.topic_partitions]


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )
