"""ShareGroupHeartbeat (KIP-932): joining, assignment and leaving.

A partition is assigned once it is initialized at the share coordinator. A heartbeat that finds uninitialized
partitions requests the effect `InitializeShareGroupState`; a later heartbeat assigns them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import NOTHING
from moldau.groups.assignors.spec import Assignment as Partitions
from moldau.groups.context import Requester
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.modern.subscription import Subscriptions, count_names, is_homogeneous
from moldau.groups.share.checks import check_epoch, check_size
from moldau.groups.share.context import ShareContext
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import LEAVE_GROUP_EPOCH, ShareMember
from moldau.groups.share.records import current_record, epoch_record, member_record, member_tombstones
from moldau.groups.share.target import target_assignment
from moldau.groups.share.topics import ShareStateTopics, topics_record
from moldau.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, DecisionBuilder
from moldau.statemachine.effects import InitializeShareGroupState

logger = logging.getLogger(__name__)

#: Unchanged topics are checked again after this time; a metadata change triggers the check earlier.
_METADATA_REFRESH_INTERVAL_MS = 2**31 - 1


class ShareHeartbeats:
    def __init__(self, context: ShareContext) -> None:
        self._context = context

    def heartbeat(
        self, requester: Requester, request: ShareGroupHeartbeatRequest
    ) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        """Serve a request that has passed `check_request`."""
        if request.member_epoch == LEAVE_GROUP_EPOCH:
            return self._leave(request)
        group = self._group(request)
        check_size(group, request.member_id, self._context.group_context.settings().share_max_size)
        joins = request.member_epoch == 0
        known = group.members.get(request.member_id)
        member = known or (ShareMember(request.member_id) if joins else group.member(request.member_id))
        check_epoch(member, request.member_epoch)
        return _GroupUpdate(self._context, group, request).decide(
            member, _updated(member, requester, request)
        )

    def _group(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group_id = request.group_id
        group = self._context.registry.find(group_id)
        if group is None and request.member_epoch == 0:
            return ShareGroup(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return self._context.registry.get_as(ShareGroup, group_id, "share")

    # Removing members.

    def _leave(self, request: ShareGroupHeartbeatRequest) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        group = self._context.registry.get_as(ShareGroup, request.group_id, "share")
        member = group.member(request.member_id)
        logger.info("%s leaves group %s", member.member_id, group.group_id)
        response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return self._remove(group, member, response)

    def fence(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        """Remove a member whose session has expired."""
        group = self._context.registry.find_as(ShareGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return Decision([], None)
        logger.info("fencing %s from group %s: its session has expired", member_id, group_id)
        return self._remove(group, member, None)

    def _remove(self, group: ShareGroup, member: ShareMember, response: Any) -> Decision[Entry, Any]:
        group_id = group.group_id
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        metadata_hash = self._context.hashes.of_topics(subscriptions, self._context.group_context.image)
        records = member_tombstones(group_id, member.member_id)
        records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
        return Decision(records, response, lambda: self._context.cancel_session(group_id, member.member_id))


class _GroupUpdate(DecisionBuilder[Entry]):
    """The update of a share group by one heartbeat: a decision, built step by step."""

    def __init__(
        self, share_context: ShareContext, group: ShareGroup, request: ShareGroupHeartbeatRequest
    ) -> None:
        super().__init__()
        self._share_context = share_context
        self._context = share_context.group_context
        self._group = group
        self._request = request
        self._now_ms = self._context.clock.time_ms()
        self._epoch = group.epoch
        self._homogeneous = group.is_homogeneous
        self._subscriptions: Subscriptions = group.subscriptions

    def decide(
        self, member: ShareMember, updated: ShareMember
    ) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        group_id = self._group.group_id
        bumped = self._update_metadata(member, updated)
        reconciled = self._reconcile(updated, self._target(updated), bumped)
        self.once_appended(lambda: self._share_context.restart_session(group_id, updated.member_id))
        self._initialize_missing()
        return self.build(self._response(member, reconciled))

    def _update_metadata(self, member: ShareMember, updated: ShareMember) -> bool:
        """Bump the group epoch if subscriptions, topics or initialized partitions changed; return whether."""
        group = self._group
        if updated != member or member.member_id not in group.members:
            self.records.append(member_record(group.group_id, updated))
        bump = updated.subscribed_topic_names != member.subscribed_topic_names
        bump |= group.assignment_epoch >= group.epoch and self._has_unassigned()
        deadline = group.refresh_deadline
        if not bump and self._now_ms < deadline.time_ms and group.epoch >= deadline.epoch:
            return False
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        count_names(subscriptions, updated.subscribed_topic_names, 1)
        self._subscriptions = subscriptions
        members = len(group.members) + (updated.member_id not in group.members)
        self._homogeneous = is_homogeneous({}, subscriptions, members)
        metadata_hash = self._share_context.hashes.of_topics(subscriptions, self._context.image)
        bump |= metadata_hash != group.metadata_hash
        if bump:
            self._epoch += 1
            self.records.append(epoch_record(group.group_id, self._epoch, metadata_hash))
            logger.info("the epoch of group %s is %d", group.group_id, self._epoch)
        refreshed = RefreshDeadline(self._now_ms + _METADATA_REFRESH_INTERVAL_MS, self._epoch)
        self.once_appended(lambda: self._set_deadline(refreshed))
        return bump

    def _set_deadline(self, deadline: RefreshDeadline) -> None:
        """Set the deadline of the registered group: replaying the records may have created it."""
        group = self._share_context.registry.find_as(ShareGroup, self._group.group_id)
        if group is not None:
            group.refresh_deadline = deadline

    def _has_unassigned(self) -> bool:
        """Return whether initialized partitions of subscribed topics are in no target."""
        group = self._group
        if not group.members or group.topics is None:
            return False
        assigned: dict[TopicId, set[int]] = {}
        for target in group.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            topic.name in group.subscriptions
            and (topic_id not in assigned or assigned[topic_id] != set(topic.partitions))
            for topic_id, topic in group.topics.initialized.items()
        )

    # The assignment.

    def _target(self, updated: ShareMember) -> tuple[int, Partitions]:
        group = self._group
        due = group.may_assign(self._now_ms, self._share_context.assignment_interval_ms(group.group_id))
        if group.assignment_epoch >= self._epoch or not due:
            return group.assignment_epoch, group.targets.get(updated.member_id, NOTHING)
        records, targets = target_assignment(
            group, self._context.image, updated, self._epoch, self._homogeneous, self._now_ms
        )
        self.records += records
        logger.info("group %s has a target for epoch %d", group.group_id, self._epoch)
        return self._epoch, targets.get(updated.member_id, NOTHING)

    def _reconcile(self, member: ShareMember, target: tuple[int, Partitions], bumped: bool) -> ShareMember:
        epoch, assignment = target
        if not bumped and member.is_reconciled_to(epoch):
            return member
        by_name = self._context.image.topics.by_name
        names = member.subscribed_topic_names
        subscribed = {by_name[name].id for name in names if name in by_name}
        assigned = {topic_id: found for topic_id, found in assignment.items() if topic_id in subscribed}
        reconciled = member.moved_to(epoch, assigned)
        if reconciled != member:
            self.records.append(current_record(self._group.group_id, reconciled))
        return reconciled

    def _initialize_missing(self) -> None:
        group, image = self._group, self._context.image
        topics = group.topics or ShareStateTopics()
        retry_ms = self._context.settings().share_initialize_retry_ms
        missing = topics.missing(self._subscriptions, image, self._now_ms, retry_ms)
        if not missing:
            return
        self.records.append(topics_record(group.group_id, topics.start_initialization(missing), image))
        offsets = {topic_id: dict.fromkeys(topic.partitions, -1) for topic_id, topic in missing.items()}
        self.effects.append(InitializeShareGroupState(group.group_id, self._epoch, offsets))

    def _response(self, member: ShareMember, updated: ShareMember) -> ShareGroupHeartbeatResponse:
        """Include the assignment if the member joins, sends its subscription, or has a new assignment."""
        request = self._request
        includes_assignment = (
            request.member_epoch == 0
            or request.subscribed_topic_names is not None
            or member.assigned != updated.assigned
        )
        return ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._share_context.heartbeat_interval_ms(request.group_id),
            assignment=_assignment(updated.assigned.items()) if includes_assignment else None,
        )


def _updated(member: ShareMember, requester: Requester, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """Apply the fields of a request; null fields stay unchanged."""
    names = request.subscribed_topic_names
    return replace(
        member,
        client_id=requester.client_id,
        client_host=requester.client_host,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
    )


def _assignment(assigned: Iterable[tuple[TopicId, tuple[int, ...]]]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned
        ]
    )
