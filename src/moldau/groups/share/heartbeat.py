"""ShareGroupHeartbeat: with one request a member joins, hears which partitions it reads from, leaves.

A partition is assigned once the share coordinator has state for it. A heartbeat that finds partitions without
any asks for it (`InitializeShareGroupState`, an effect); a later one finds it made, and assigns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
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
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import LEAVE_GROUP_EPOCH, ShareMember
from moldau.groups.share.parts import ShareParts
from moldau.groups.share.records import current_record, epoch_record, member_record, member_tombstones
from moldau.groups.share.target import target_assignment
from moldau.groups.share.topics import ShareTopics, topics_record
from moldau.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import InitializeShareGroupState

log = logging.getLogger(__name__)

#: Kafka looks at unchanged topics again only after this long; a change of topics asks for it at once.
_METADATA_REFRESH_INTERVAL_MS = 2**31 - 1


class ShareHeartbeats:
    def __init__(self, parts: ShareParts) -> None:
        self._parts = parts

    def heartbeat(
        self, requester: Requester, request: ShareGroupHeartbeatRequest
    ) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        """The request has been through `check_request`."""
        if request.member_epoch == LEAVE_GROUP_EPOCH:
            return self._leave(request)
        group = self._group(request)
        check_size(group, request.member_id, self._parts.context.settings().share_max_size)
        joins = request.member_epoch == 0
        known = group.members.get(request.member_id)
        member = known or (ShareMember(request.member_id) if joins else group.member(request.member_id))
        check_epoch(member, request.member_epoch)
        return _Beat(self._parts, group, request).decide(member, _updated(member, requester, request))

    def _group(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group_id = request.group_id
        group = self._parts.registry.find(group_id)
        if group is None and request.member_epoch == 0:
            return ShareGroup(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return self._parts.registry.get_as(ShareGroup, group_id, "share")

    # Members that go.

    def _leave(self, request: ShareGroupHeartbeatRequest) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        group = self._parts.registry.get_as(ShareGroup, request.group_id, "share")
        member = group.member(request.member_id)
        log.info("%s leaves group %s", member.member_id, group.group_id)
        response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        return self._remove(group, member, response)

    def fence(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        """The member's session has run out."""
        group = self._parts.registry.find_as(ShareGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return Decision([], None)
        log.info("%s is fenced from group %s: its session has expired", member_id, group_id)
        return self._remove(group, member, None)

    def _remove(self, group: ShareGroup, member: ShareMember, response: Any) -> Decision[Entry, Any]:
        group_id = group.group_id
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        metadata_hash = self._parts.hashes.of_topics(subscriptions, self._parts.context.image)
        records = member_tombstones(group_id, member.member_id)
        records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
        return Decision(records, response, lambda: self._parts.forget(group_id, member.member_id))


class _Beat:
    """One heartbeat that does not leave, step by step."""

    def __init__(self, parts: ShareParts, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> None:
        self._parts = parts
        self._context = parts.context
        self._group = group
        self._request = request
        self._records: list[CoordinatorRecord] = []
        self._soft: list[Callable[[], None]] = []
        self._now_ms = parts.context.clock.time_ms()
        self._epoch = group.epoch
        self._homogeneous = group.is_homogeneous
        self._subscriptions: Subscriptions = group.subscriptions

    def decide(
        self, member: ShareMember, updated: ShareMember
    ) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        group_id = self._group.group_id
        bumped = self._update_metadata(member, updated)
        reconciled = self._reconcile(updated, self._target(updated), bumped)
        self._soft.append(lambda: self._parts.heard_from(group_id, updated.member_id))
        effects = self._missing_state()
        return Decision(self._records, self._response(member, reconciled), self._then, effects=effects)

    def _then(self) -> None:
        for change in self._soft:
            change()

    def _update_metadata(self, member: ShareMember, updated: ShareMember) -> bool:
        """Raise the group's epoch if members, topics or their state have changed; whether it was."""
        group = self._group
        if updated != member or member.member_id not in group.members:
            self._records.append(member_record(group.group_id, updated))
        bump = updated.subscribed_topic_names != member.subscribed_topic_names
        bump |= group.assignment_epoch >= group.epoch and self._state_waits()
        deadline = group.refresh_deadline
        if not bump and self._now_ms < deadline.time_ms and group.epoch >= deadline.epoch:
            return False
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        count_names(subscriptions, updated.subscribed_topic_names, 1)
        self._subscriptions = subscriptions
        members = len(group.members) + (updated.member_id not in group.members)
        self._homogeneous = is_homogeneous({}, subscriptions, members)
        metadata_hash = self._parts.hashes.of_topics(subscriptions, self._context.image)
        bump |= metadata_hash != group.metadata_hash
        if bump:
            self._epoch += 1
            self._records.append(epoch_record(group.group_id, self._epoch, metadata_hash))
            log.info("group %s has epoch %d", group.group_id, self._epoch)
        refreshed = RefreshDeadline(self._now_ms + _METADATA_REFRESH_INTERVAL_MS, self._epoch)
        self._soft.append(lambda: self._set_deadline(refreshed))
        return bump

    def _set_deadline(self, deadline: RefreshDeadline) -> None:
        """On the group as it is by then: a group that is new was made by the replay."""
        group = self._parts.registry.find_as(ShareGroup, self._group.group_id)
        if group is not None:
            group.refresh_deadline = deadline

    def _state_waits(self) -> bool:
        """Whether there is state for partitions of subscribed topics that nobody is to have."""
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
        since, interval_ms = group.assignment_timestamp_ms, self._parts.assignment_interval_ms(group.group_id)
        due = since == 0 or interval_ms == 0 or self._now_ms >= since + interval_ms
        if group.assignment_epoch >= self._epoch or not due:
            return group.assignment_epoch, group.targets.get(updated.member_id, NOTHING)
        records, targets = target_assignment(
            group, self._context.image, updated, self._epoch, self._homogeneous, self._now_ms
        )
        self._records += records
        log.info("group %s has a target for epoch %d", group.group_id, self._epoch)
        return self._epoch, targets.get(updated.member_id, NOTHING)

    def _reconcile(self, member: ShareMember, target: tuple[int, Partitions], bumped: bool) -> ShareMember:
        epoch, assignment = target
        if not bumped and member.is_reconciled_to(epoch):
            return member
        by_name = self._context.image.topics.by_name
        names = member.subscribed_topic_names
        subscribed = {by_name[name].id for name in names if name in by_name}
        mine = {topic_id: found for topic_id, found in assignment.items() if topic_id in subscribed}
        reconciled = member.moved_to(epoch, mine)
        if reconciled != member:
            self._records.append(current_record(self._group.group_id, reconciled))
        return reconciled

    def _missing_state(self) -> list[InitializeShareGroupState]:
        group, image = self._group, self._context.image
        topics = group.topics or ShareTopics()
        retry_ms = self._context.settings().share_initialize_retry_ms
        missing = topics.missing(self._subscriptions, image, self._now_ms, retry_ms)
        if not missing:
            return []
        self._records.append(topics_record(group.group_id, topics.making(missing), image))
        offsets = {topic_id: dict.fromkeys(topic.partitions, -1) for topic_id, topic in missing.items()}
        return [InitializeShareGroupState(group.group_id, self._epoch, offsets)]

    def _response(self, member: ShareMember, updated: ShareMember) -> ShareGroupHeartbeatResponse:
        """The assignment is told when the member joins, when it says everything anew, and when it changes."""
        request = self._request
        tells = (
            request.member_epoch == 0
            or request.subscribed_topic_names is not None
            or member.assigned != updated.assigned
        )
        return ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._parts.heartbeat_interval_ms(request.group_id),
            assignment=_assignment(updated.assigned.items()) if tells else None,
        )


def _updated(member: ShareMember, requester: Requester, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """What the member says of itself; what it leaves out stays as it was."""
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
