"""LeaveGroup for classic groups: several members in one request, by member id or by instance id (KIP-345)."""

from __future__ import annotations

import logging
from collections.abc import Container

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)


class ClassicLeaves:
    def __init__(self, rebalances: ClassicRebalances) -> None:
        self._rebalances = rebalances

    def leave(self, request: LeaveGroupRequest, group: ClassicGroup) -> Decision[Entry, LeaveGroupResponse]:
        leaving: dict[str, None] = {}
        results: list[MemberResponse] = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member_id = _leaving_member(group, identity, leaving)
                leaving[member_id] = None
                reason = identity.reason or "no reason given"
                logger.info("%s leaves group %s: %s", member_id, group.group_id, reason)
            except KafkaError as error:
                code = error.code
            results.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        response = LeaveGroupResponse(members=results)
        if not leaving:
            return Decision([], response)
        return self._rebalances.remove_members(group, leaving, f"{', '.join(leaving)} left", response)


def _leaving_member(group: ClassicGroup, identity: MemberIdentity, leaving: Container[str]) -> str:
    """Return the id of a member that may leave and is not `leaving` already."""
    instance_id = identity.group_instance_id
    known = None if instance_id is None else group.static_members.get(instance_id)
    if identity.member_id in leaving or known in leaving:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not identity.member_id:
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return known
    if identity.member_id not in group.pending_join:
        group.check_member(identity.member_id, instance_id)
    return identity.member_id
