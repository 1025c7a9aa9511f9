"""The offsets of share groups: altering, deleting and the outcome of initializations.

The share coordinator stores the offsets. Decisions here return the partitions that a request concerns; the
caller then asks the share coordinator and reports the outcome as another decision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicId
from moldau.groups.share.context import ShareContext
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.topics import (
    DeleteShareGroupState,
    ShareStateTopics,
    StateTopic,
    combine,
    state_topics,
    topics_record,
)
from moldau.metadata.image import TopicImage
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponseTopic,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import InitializeShareGroupState

_NO_PARTITION = "The topic or partition does not exist."


class AlterResult(NamedTuple):
    response: AlterShareGroupOffsetsResponse
    state: InitializeShareGroupState


class DeleteResult(NamedTuple):
    """The topics that are refused, and the state to delete for the others; None if there is none."""

    refused: list[DeleteShareGroupOffsetsResponseTopic]
    state: DeleteShareGroupState | None


class ShareOffsets:
    def __init__(self, context: ShareContext) -> None:
        self._share_context = context
        self._context = context.group_context

    # Outcomes of initializations.

    def initialized(self, group_id: str, topics: Mapping[TopicId, Collection[int]]) -> Decision[Entry, None]:
        group = self._share_context.registry.find_as(ShareGroup, group_id)
        if group is None or not topics:
            return Decision([], None)
        initialized = state_topics(topics, self._context.image, self._context.clock.time_ms())
        return Decision(
            [self._record(group, (group.topics or ShareStateTopics()).complete_initialization(initialized))],
            None,
        )

    def not_initialized(
        self, group_id: str, topics: Mapping[TopicId, Collection[int]]
    ) -> Decision[Entry, None]:
        """Cancel a failed initialization, so that a heartbeat requests it again."""
        group = self._share_context.registry.find_as(ShareGroup, group_id)
        if group is None or group.topics is None or not group.topics.initializing or not topics:
            return Decision([], None)
        return Decision([self._record(group, group.topics.cancel_initialization(topics))], None)

    def _record(self, group: ShareGroup, topics: ShareStateTopics) -> CoordinatorRecord:
        return topics_record(group.group_id, topics, self._context.image)

    # AlterShareGroupOffsets.

    def alter(self, request: AlterShareGroupOffsetsRequest) -> Decision[Entry, AlterResult]:
        group_id = request.group_id
        group = (
            self._share_context.registry.get_as(ShareGroup, group_id, "share")
            if group_id in self._share_context.registry
            else ShareGroup(group_id)
        )
        group.check_delete()
        by_name, now_ms = self._context.image.topics.by_name, self._context.clock.time_ms()
        results, offsets, initializing = [], {}, {}
        for requested in request.topics:
            topic = by_name.get(requested.topic_name)
            results.append(_altered(requested, topic))
            if topic is not None:
                known = {p.partition_index: p.start_offset for p in requested.partitions if _has(topic, p)}
                initializing[topic.id] = StateTopic(topic.name, frozenset(known), now_ms)
                if known:
                    offsets[topic.id] = known
        records = []
        if initializing:
            records.append(
                self._record(group, (group.topics or ShareStateTopics()).start_initialization(initializing))
            )
        response = AlterShareGroupOffsetsResponse(responses=results)
        return Decision(
            records, AlterResult(response, InitializeShareGroupState(group_id, group.epoch, offsets))
        )

    # DeleteShareGroupOffsets and DeleteGroups.

    def delete(self, request: DeleteShareGroupOffsetsRequest) -> Decision[Entry, DeleteResult]:
        group = self._share_context.registry.get_as(ShareGroup, request.group_id, "share")
        group.check_delete()
        topics = group.topics
        if topics is None:
            return Decision([], DeleteResult([], None))
        refused: list[DeleteShareGroupOffsetsResponseTopic] = []
        deleted: dict[TopicId, Collection[int]] = {}
        initialized, deleting = dict(topics.initialized), set(topics.deleting)
        for requested in request.topics:
            topic = self._context.image.topics.by_name.get(requested.topic_name)
            if topic is not None and topic.id in initialized:
                deleted[topic.id] = initialized.pop(topic.id).partitions
                deleting.add(topic.id)
            elif topic is not None and topic.id in deleting:
                deleted[topic.id] = tuple(topic.partitions)
            else:
                refused.append(_refused(requested.topic_name, topic is not None))
        remaining = topics._replace(initialized=initialized, deleting=frozenset(deleting))
        state = DeleteShareGroupState(request.group_id, deleted) if deleted else None
        return Decision([self._record(group, remaining)], DeleteResult(refused, state))

    def deleted(
        self, group_id: str, topic_ids: Collection[TopicId]
    ) -> Decision[Entry, list[DeleteShareGroupOffsetsResponseTopic]]:
        group = self._share_context.registry.find_as(ShareGroup, group_id)
        if group is None or group.topics is None:
            return Decision([], [])
        remaining = group.topics._replace(deleting=group.topics.deleting - set(topic_ids))
        by_id = self._context.image.topics.by_id
        results = [
            DeleteShareGroupOffsetsResponseTopic(
                topic_id=topic_id, topic_name=by_id[topic_id].name if topic_id in by_id else ""
            )
            for topic_id in topic_ids
        ]
        return Decision([self._record(group, remaining)], results)

    def delete_group(self, group_id: str) -> Decision[Entry, DeleteShareGroupState | None]:
        """Mark all state of a group as deleting and return it; None if there is none."""
        group = self._share_context.registry.find_as(ShareGroup, group_id)
        if group is None:
            return Decision([], None)
        group.check_delete()
        topics = group.topics
        if topics is None:
            return Decision([], None)
        by_id = self._context.image.topics.by_id
        still_deleting = {
            topic_id: StateTopic(by_id[topic_id].name, frozenset(by_id[topic_id].partitions), -1)
            for topic_id in topics.deleting
            if topic_id in by_id
        }
        deleting = combine(combine(topics.initialized, topics.initializing), still_deleting)
        record = self._record(group, ShareStateTopics(deleting=frozenset(deleting)))
        partitions = {topic_id: topic.partitions for topic_id, topic in deleting.items()}
        return Decision([record], DeleteShareGroupState(group_id, partitions) if deleting else None)

    def topics_deleted(self, topic_ids: Collection[TopicId]) -> Decision[Entry, None]:
        records = [
            self._record(group, group.topics.without_topics(topic_ids))
            for group in self._share_context.registry
            if isinstance(group, ShareGroup)
            and group.topics is not None
            and group.topics.contains_any(topic_ids)
        ]
        return Decision(records, None)

    def partitions_of(self, group_id: str) -> dict[TopicId, frozenset[int]]:
        """Return the initialized partitions of a group."""
        group = self._share_context.registry.find_as(ShareGroup, group_id)
        known = {} if group is None or group.topics is None else group.topics.initialized
        return {topic_id: topic.partitions for topic_id, topic in known.items()}


def _has(topic: TopicImage, requested: AlterShareGroupOffsetsRequestPartition) -> bool:
    return requested.partition_index < len(topic.partitions)


def _altered(
    requested: AlterShareGroupOffsetsRequestTopic, topic: TopicImage | None
) -> AlterShareGroupOffsetsResponseTopic:
    result = AlterShareGroupOffsetsResponseTopic(topic_name=requested.topic_name)
    if topic is not None:
        result.topic_id = topic.id
    for partition in requested.partitions:
        partition_result = AlterShareGroupOffsetsResponsePartition(partition_index=partition.partition_index)
        if topic is None or not _has(topic, partition):
            partition_result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partition_result.error_message = _NO_PARTITION
        result.partitions.append(partition_result)
    return result


def _refused(name: str, exists: bool) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="The group has no offsets of this topic." if exists else _NO_PARTITION,
    )
