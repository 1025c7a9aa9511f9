"""How committed offsets go: on request, with their topic, or when they are old.

An offset is old when `offsets.retention.minutes` have passed: since its group lost its last member, or since
the commit for a group that never had members or whose members no longer subscribe to the topic. A group that
has lost its last member and its last offset goes as well. What would be too much for one batch is done in
several, and so is looking at very many groups.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID, TopicId, TopicPartition
from moldau.groups.context import GroupContext
from moldau.groups.group import SHARE, BaseTimestamp, CommittedOffset, Group
from moldau.groups.offsets.store import OffsetStore, offset_tombstone
from moldau.groups.registry import GroupRegistry
from moldau.metadata.image import TopicImage
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)

_EXPIRATION_KEY = "expire-offsets"
_RECORDS_AT_ONCE = 1000
#: Of names in one batch, which has to be smaller than `max.message.bytes`. A character may take four bytes.
_CHARACTERS_AT_ONCE = 200_000
_OFFSETS_LOOKED_AT = 20_000


class _Batch:
    """Tombstones that may still be written together."""

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._characters = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) >= _RECORDS_AT_ONCE or self._characters >= _CHARACTERS_AT_ONCE

    def remove_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
        """Whether there was room for all."""
        for partition in partitions:
            if self.is_full:
                return False
            self.records.append(offset_tombstone(group_id, partition))
            self._characters += len(group_id) + len(partition.topic)
        return True

    def remove_group(self, group: Group) -> None:
        tombstones = group.tombstones()
        self.records += tombstones
        self._characters += len(tombstones) * len(group.group_id)


class OffsetRemoval:
    def __init__(self, context: GroupContext, registry: GroupRegistry, store: OffsetStore) -> None:
        self._context = context
        self._registry = registry
        self._store = store
        self._topics_deleted = 0
        #: Ids of groups that are still to be looked at, the last first.
        self._unchecked: list[str] = []

    # On request.

    def delete(self, request: OffsetDeleteRequest) -> Decision[Entry, OffsetDeleteResponse]:
        group = self._registry.get(request.group_id)
        group.check_offset_delete()
        records: list[Entry] = []
        topics = [self._delete_topic(group, topic, records) for topic in request.topics]
        return Decision(records, OffsetDeleteResponse(topics=topics))

    def _delete_topic(
        self, group: Group, topic: OffsetDeleteRequestTopic, records: list[Entry]
    ) -> OffsetDeleteResponseTopic:
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
        stored = set(self._store.partitions_of(group.group_id))
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if code is ErrorCode.NONE and partition in stored:
                records.append(offset_tombstone(group.group_id, partition))
        answers = [
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ]
        return OffsetDeleteResponseTopic(name=topic.name, partitions=answers)

    def tombstones_of(self, group_id: str) -> list[CoordinatorRecord]:
        return [offset_tombstone(group_id, each) for each in self._store.partitions_of(group_id)]

    # With their topic.

    def topics_deleted(self, topics: Mapping[TopicId, TopicImage]) -> None:
        """The offsets of these topics are to go, soon."""
        ids = {topic.name: topic_id for topic_id, topic in topics.items()}
        self._topics_deleted += 1
        self._schedule_removal(f"topics-deleted-{self._topics_deleted}", ids)

    def _schedule_removal(self, key: str, ids: Mapping[str, TopicId]) -> None:
        self._context.timers.schedule(key, 0, lambda: self._remove_topics(key, ids))

    def _remove_topics(self, key: str, ids: Mapping[str, TopicId]) -> Decision[Entry, None]:
        found = {
            (group_id, partition): None
            for group_id, partition, offset in self._store.all_offsets()
            if partition.topic in ids and offset.topic_id in (ZERO_UUID, ids[partition.topic])
        }
        batch = _Batch()
        if all(batch.remove_offsets(group_id, [partition]) for group_id, partition in found):
            return Decision(batch.records, None)
        return Decision(batch.records, None, on_appended=lambda: self._schedule_removal(key, ids))

    # When they are old.

    def schedule_expiration(self, delay_ms: int | None = None) -> None:
        """By default after the interval in force."""
        if delay_ms is None:
            delay_ms = self._context.settings().offsets_retention_check_interval_ms
        self._context.timers.schedule(_EXPIRATION_KEY, delay_ms, self.expire)

    def expire(self) -> Decision[Entry, None]:
        """Look at the next groups; when all have been looked at, all are again after the interval."""
        if not self._unchecked:
            self._unchecked = [group.group_id for group in self._registry]
        batch, emptied, checked = _Batch(), [], 0
        looked_at = 0
        for group_id in reversed(self._unchecked):
            if batch.is_full or looked_at >= _OFFSETS_LOOKED_AT:
                break
            group = self._registry.find(group_id)
            looked_at += 1 + len(self._store.of_group(group_id))
            if group is not None:
                expired, all_gone = self._expired(group)
                if not batch.remove_offsets(group_id, expired):
                    break
                if all_gone and group.is_empty:
                    batch.remove_group(group)
                    emptied.append(group)
            checked += 1

        def then() -> None:
            if batch.records:
                log.info("%d records of old offsets and empty groups are removed", len(batch.records))
            for group in emptied:
                group.cancel_timers(self._context.timers)
            del self._unchecked[len(self._unchecked) - checked :]
            self.schedule_expiration(0 if self._unchecked else None)

        return Decision(batch.records, None, on_appended=then)

    def _expired(self, group: Group) -> tuple[list[TopicPartition], bool]:
        """The offsets that are old, and whether that leaves the group without any."""
        if group.type == SHARE:
            return [], False
        offsets = self._store.of_group(group.group_id)
        has_pending = self._store.has_open_transactions(group.group_id)
        if not offsets:
            return [], not has_pending
        base = group.offset_expiration()
        if base is None:
            return [], False
        now_ms, retention_ms = self._context.clock.time_ms(), self._context.settings().offsets_retention_ms
        expired = [
            partition
            for partition, offset in offsets.items()
            if not group.is_subscribed_to(partition.topic)
            and _is_old(offset, base, now_ms, retention_ms)
            and not self._store.is_unstable(group.group_id, partition)
        ]
        return expired, len(expired) == len(offsets) and not has_pending


def _is_old(offset: CommittedOffset, base: BaseTimestamp, now_ms: int, retention_ms: int) -> bool:
    if offset.expire_timestamp_ms is not None:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base(offset) >= retention_ms
