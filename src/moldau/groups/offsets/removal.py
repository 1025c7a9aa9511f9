"""The removal of committed offsets: on request, with their topic, or by expiration.

An offset expires after `offsets.retention.minutes`, counted from the time its group became empty, or from the
commit if the group never had members or its members no longer subscribe to the topic (KIP-211). An empty
group is removed with its last offset. Large removals, and the inspection of many groups, take several
batches.
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

logger = logging.getLogger(__name__)

_EXPIRATION_KEY = "expire-offsets"
_MAX_BATCH_RECORDS = 1000
#: Limits the names in a batch, which must be smaller than `max.message.bytes`; a character has up to 4 bytes.
_MAX_BATCH_CHARACTERS = 200_000
_MAX_OFFSETS_CHECKED = 20_000


class _Batch:
    """Tombstones to be written together."""

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._characters = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) >= _MAX_BATCH_RECORDS or self._characters >= _MAX_BATCH_CHARACTERS

    def remove_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether all of them fit into the batch."""
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
        #: The ids of groups still to be checked, last first.
        self._unchecked: list[str] = []

    # OffsetDelete and DeleteGroups.

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
        results = [
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ]
        return OffsetDeleteResponseTopic(name=topic.name, partitions=results)

    def tombstones_of(self, group_id: str) -> list[CoordinatorRecord]:
        return [offset_tombstone(group_id, each) for each in self._store.partitions_of(group_id)]

    # Deleted topics.

    def topics_deleted(self, topics: Mapping[TopicId, TopicImage]) -> None:
        """Schedule the removal of the offsets of deleted topics."""
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

    # Expiration.

    def schedule_expiration(self, delay_ms: int | None = None) -> None:
        """Schedule a check, by default after `offsets.retention.check.interval.ms`."""
        if delay_ms is None:
            delay_ms = self._context.settings().offsets_retention_check_interval_ms
        self._context.timers.schedule(_EXPIRATION_KEY, delay_ms, self.expire)

    def expire(self) -> Decision[Entry, None]:
        """Check the next groups; after the last one, all are checked again after the interval."""
        if not self._unchecked:
            self._unchecked = [group.group_id for group in self._registry]
        batch, emptied, checked = _Batch(), [], 0
        checked_offsets = 0
        for group_id in reversed(self._unchecked):
            if batch.is_full or checked_offsets >= _MAX_OFFSETS_CHECKED:
                break
            group = self._registry.find(group_id)
            checked_offsets += 1 + len(self._store.of_group(group_id))
            if group is not None:
                expired, none_left = self._expired(group)
                if not batch.remove_offsets(group_id, expired):
                    break
                if none_left and group.is_empty:
                    batch.remove_group(group)
                    emptied.append(group)
            checked += 1

        def schedule_next() -> None:
            if batch.records:
                logger.info("removed expired offsets and empty groups with %d records", len(batch.records))
            for group in emptied:
                group.cancel_timers(self._context.timers)
            del self._unchecked[len(self._unchecked) - checked :]
            self.schedule_expiration(0 if self._unchecked else None)

        return Decision(batch.records, None, on_appended=schedule_next)

    def _expired(self, group: Group) -> tuple[list[TopicPartition], bool]:
        """Return the expired offsets, and whether the group has no others."""
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
            and _is_expired(offset, base, now_ms, retention_ms)
            and not self._store.is_unstable(group.group_id, partition)
        ]
        return expired, len(expired) == len(offsets) and not has_pending


def _is_expired(offset: CommittedOffset, base: BaseTimestamp, now_ms: int, retention_ms: int) -> bool:
    if offset.expire_timestamp_ms is not None:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base(offset) >= retention_ms
