"""The offsets of share groups as an administrator changes them: where a group begins anew, and forgetting it.

The share coordinator keeps the offsets. What is decided here is which partitions are concerned; whoever asks
then has to ask the share coordinator, and to say here what came of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicId
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.parts import ShareParts
from moldau.groups.share.topics import (
    DeleteShareGroupState,
    ShareTopics,
    StateTopic,
    named,
    together,
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

_NO_PARTITION = "There is no such topic or partition."


class Altered(NamedTuple):
    response: AlterShareGroupOffsetsResponse
    state: InitializeShareGroupState


class Deleting(NamedTuple):
    """Topics that cannot be, and what is to be asked for to delete the others; None if nothing is."""

    refused: list[DeleteShareGroupOffsetsResponseTopic]
    state: DeleteShareGroupState | None


class ShareOffsets:
    def __init__(self, parts: ShareParts) -> None:
        self._parts = parts
        self._context = parts.context

    # What came of asking the share coordinator.

    def initialized(self, group_id: str, topics: Mapping[TopicId, Collection[int]]) -> Decision[Entry, None]:
        group = self._parts.registry.find_as(ShareGroup, group_id)
        if group is None or not topics:
            return Decision([], None)
        made = named(topics, self._context.image, self._context.clock.time_ms())
        return Decision([self._record(group, (group.topics or ShareTopics()).made(made))], None)

    def not_initialized(
        self, group_id: str, topics: Mapping[TopicId, Collection[int]]
    ) -> Decision[Entry, None]:
        """So that it is tried again."""
        group = self._parts.registry.find_as(ShareGroup, group_id)
        if group is None or group.topics is None or not group.topics.initializing or not topics:
            return Decision([], None)
        return Decision([self._record(group, group.topics.not_made(topics))], None)

    def _record(self, group: ShareGroup, topics: ShareTopics) -> CoordinatorRecord:
        return topics_record(group.group_id, topics, self._context.image)

    # Altering.

    def alter(self, request: AlterShareGroupOffsetsRequest) -> Decision[Entry, Altered]:
        group_id = request.group_id
        group = (
            self._parts.registry.get_as(ShareGroup, group_id, "share")
            if group_id in self._parts.registry
            else ShareGroup(group_id)
        )
        group.check_delete()
        by_name, now_ms = self._context.image.topics.by_name, self._context.clock.time_ms()
        answers, offsets, making = [], {}, {}
        for asked in request.topics:
            topic = by_name.get(asked.topic_name)
            answers.append(_altered(asked, topic))
            if topic is not None:
                known = {p.partition_index: p.start_offset for p in asked.partitions if _has(topic, p)}
                making[topic.id] = StateTopic(topic.name, frozenset(known), now_ms)
                if known:
                    offsets[topic.id] = known
        records = []
        if making:
            records.append(self._record(group, (group.topics or ShareTopics()).making(making)))
        response = AlterShareGroupOffsetsResponse(responses=answers)
        return Decision(records, Altered(response, InitializeShareGroupState(group_id, group.epoch, offsets)))

    # Deleting.

    def delete(self, request: DeleteShareGroupOffsetsRequest) -> Decision[Entry, Deleting]:
        group = self._parts.registry.get_as(ShareGroup, request.group_id, "share")
        group.check_delete()
        topics = group.topics
        if topics is None:
            return Decision([], Deleting([], None))
        refused: list[DeleteShareGroupOffsetsResponseTopic] = []
        concerned: dict[TopicId, Collection[int]] = {}
        initialized, deleting = dict(topics.initialized), set(topics.deleting)
        for asked in request.topics:
            topic = self._context.image.topics.by_name.get(asked.topic_name)
            if topic is not None and topic.id in initialized:
                concerned[topic.id] = initialized.pop(topic.id).partitions
                deleting.add(topic.id)
            elif topic is not None and topic.id in deleting:
                concerned[topic.id] = tuple(topic.partitions)
            else:
                refused.append(_refused(asked.topic_name, topic is not None))
        left = topics._replace(initialized=initialized, deleting=frozenset(deleting))
        state = DeleteShareGroupState(request.group_id, concerned) if concerned else None
        return Decision([self._record(group, left)], Deleting(refused, state))

    def deleted(
        self, group_id: str, topic_ids: Collection[TopicId]
    ) -> Decision[Entry, list[DeleteShareGroupOffsetsResponseTopic]]:
        group = self._parts.registry.find_as(ShareGroup, group_id)
        if group is None or group.topics is None:
            return Decision([], [])
        left = group.topics._replace(deleting=group.topics.deleting - set(topic_ids))
        by_id = self._context.image.topics.by_id
        answers = [
            DeleteShareGroupOffsetsResponseTopic(
                topic_id=topic_id, topic_name=by_id[topic_id].name if topic_id in by_id else ""
            )
            for topic_id in topic_ids
        ]
        return Decision([self._record(group, left)], answers)

    def delete_group(self, group_id: str) -> Decision[Entry, DeleteShareGroupState | None]:
        """All state of a group that is about to be deleted; None when there is none."""
        group = self._parts.registry.find_as(ShareGroup, group_id)
        if group is None:
            return Decision([], None)
        group.check_delete()
        topics = group.topics
        if topics is None:
            return Decision([], None)
        by_id = self._context.image.topics.by_id
        again = {
            topic_id: StateTopic(by_id[topic_id].name, frozenset(by_id[topic_id].partitions), -1)
            for topic_id in topics.deleting
            if topic_id in by_id
        }
        going = together(together(topics.initialized, topics.initializing), again)
        record = self._record(group, ShareTopics(deleting=frozenset(going)))
        partitions = {topic_id: topic.partitions for topic_id, topic in going.items()}
        return Decision([record], DeleteShareGroupState(group_id, partitions) if going else None)

    def topics_deleted(self, topic_ids: Collection[TopicId]) -> Decision[Entry, None]:
        records = [
            self._record(group, group.topics.forgetting(topic_ids))
            for group in self._parts.registry
            if isinstance(group, ShareGroup) and group.topics is not None and group.topics.mentions(topic_ids)
        ]
        return Decision(records, None)

    def partitions_of(self, group_id: str) -> dict[TopicId, frozenset[int]]:
        """The partitions a group has state for."""
        group = self._parts.registry.find_as(ShareGroup, group_id)
        known = {} if group is None or group.topics is None else group.topics.initialized
        return {topic_id: topic.partitions for topic_id, topic in known.items()}


def _has(topic: TopicImage, asked: AlterShareGroupOffsetsRequestPartition) -> bool:
    return asked.partition_index < len(topic.partitions)


def _altered(
    asked: AlterShareGroupOffsetsRequestTopic, topic: TopicImage | None
) -> AlterShareGroupOffsetsResponseTopic:
    answer = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
    if topic is not None:
        answer.topic_id = topic.id
    for partition in asked.partitions:
        told = AlterShareGroupOffsetsResponsePartition(partition_index=partition.partition_index)
        if topic is None or not _has(topic, partition):
            told.error_code, told.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_PARTITION
        answer.partitions.append(told)
    return answer


def _refused(name: str, exists: bool) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="The group has no offsets there." if exists else _NO_PARTITION,
    )
