"""ConsumerGroupHeartbeat: with one request a member joins, reports what it owns, hears what it is to own,
leaves.

A member joins with epoch 0, leaves with -1, and a static one leaves for a while with -2; its place and its
partitions are then kept for whoever comes back with the same instance id before the session ends.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.change import GroupChange, RegexStatus
from moldau.groups.consumer.checks import (
    check_epoch,
    check_released,
    check_size,
    known_static,
)
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerMember,
)
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.reconciliation import Reported
from moldau.groups.consumer.records import current_record
from moldau.groups.consumer.static import take_place
from moldau.groups.context import Requester
from moldau.groups.migration.migration import Migration
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)


class ConsumerHeartbeats:
    def __init__(self, parts: ConsumerParts, fencing: ConsumerFencing, migration: Migration) -> None:
        self._parts = parts
        self._fencing = fencing
        self._migration = migration

    def heartbeat(
        self, requester: Requester, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        """The request has been through `check_request`."""
        if request.member_epoch in (LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH):
            return self._leave(request)
        change = self._change(request)
        check_size(change.group, request.member_id, self._parts.context.settings().consumer_max_size)
        member_id = request.member_id or format_uuid(random_uuid(self._parts.context.randomness))
        member = self._member(change, request, member_id)
        updated = self._advance(change, member, _updated(member, requester, request), _reported(request))
        group_id = request.group_id
        timeout_ms = self._parts.session_timeout_ms(group_id)
        change.afterwards(lambda: self._parts.timers.heard_from(group_id, member_id, timeout_ms))
        response = self._response(request, member, updated)
        return Decision(change.records, response, change.then, replies=change.replies, effects=change.effects)

    # The group and the member.

    def _change(self, request: ConsumerGroupHeartbeatRequest) -> GroupChange:
        """The group; a member that joins makes it if there is none, or if it was an empty classic one."""
        group_id, joins = request.group_id, request.member_epoch == 0
        group = self._parts.registry.find(group_id)
        if group is None and not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if isinstance(group, ConsumerGroup):
            return GroupChange(self._parts, group)
        if group is None:
            return GroupChange(self._parts, ConsumerGroup(group_id))
        if not joins or not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return self._migration.upgrade(group)

    def _member(
        self, change: GroupChange, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> ConsumerMember:
        group, joins = change.group, request.member_epoch == 0
        if request.instance_id is None:
            known = group.members.get(member_id)
            member = known or (ConsumerMember(member_id) if joins else group.member(member_id))
            check_epoch(member, request.member_epoch, _reported(request))
            return member
        if not joins:
            member = known_static(group, request.instance_id, member_id)
            check_epoch(member, request.member_epoch, _reported(request))
            return member
        former = group.static_member(request.instance_id)
        if former is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not former.uses_classic_protocol:
            check_released(former, member_id, request.instance_id)
        return take_place(change, former, member_id)

    def _advance(
        self, change: GroupChange, member: ConsumerMember, updated: ConsumerMember, reported: Reported
    ) -> ConsumerMember:
        names_changed = change.subscribe(member, updated)
        regex = change.resolve_regexes(member, updated)
        bump = names_changed or regex is RegexStatus.CHANGED_AND_RESOLVED
        change.update_metadata(member, updated, bump)
        target = change.update_target(member, updated)
        subscription_changed = names_changed or regex is not RegexStatus.UNCHANGED
        return change.reconcile(updated, target, subscription_changed, reported)

    def _response(
        self, request: ConsumerGroupHeartbeatRequest, member: ConsumerMember, updated: ConsumerMember
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is told when the member joins, when it says everything anew, and when it changes."""
        says_everything = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        tells = request.member_epoch == 0 or says_everything or member.assigned != updated.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._parts.heartbeat_interval_ms(request.group_id),
            assignment=_assignment(updated) if tells else None,
        )

    # Leaving.

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        group = self._parts.registry.get_as(ConsumerGroup, request.group_id, "consumer")
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = known_static(group, request.instance_id, request.member_id)
            if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
                return self._leave_for_a_while(group, member, response)
        log.info("%s leaves group %s", member.member_id, group.group_id)
        return self._fencing.remove(group, [member], response)

    def _leave_for_a_while(
        self, group: ConsumerGroup, member: ConsumerMember, response: ConsumerGroupHeartbeatResponse
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        leaving = replace(
            member,
            member_epoch=LEAVE_GROUP_STATIC_EPOCH,
            pending_revocation=NO_PARTITIONS,
            assigned={topic_id: dict.fromkeys(owned, 0) for topic_id, owned in member.assigned.items()},
        )
        log.info("static member %s leaves group %s for a while", member.instance_id, group.group_id)
        return Decision([current_record(group.group_id, leaving)], response)


def _updated(
    member: ConsumerMember, requester: Requester, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    """What the member says of itself; what it leaves out stays as it was."""
    said: dict[str, Any] = {"client_id": requester.client_id, "client_host": requester.client_host}
    if request.instance_id is not None:
        said["instance_id"] = request.instance_id
    if request.rack_id is not None:
        said["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        said["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        said["server_assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        said["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        said["subscribed_topic_regex"] = request.subscribed_topic_regex
    if member.classic is None and all(getattr(member, name) == value for name, value in said.items()):
        return member
    return replace(member, classic=None, **said)


def _reported(request: ConsumerGroupHeartbeatRequest) -> Reported:
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
