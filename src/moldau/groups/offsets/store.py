"""Committed offsets by group, topic and partition, and the pending offsets of open transactions.

Offsets committed in a transaction are pending, by producer, until it ends; then they are committed or
dropped. The offset stored later wins, so a transaction that ends late does not undo a newer commit. All state
comes from replayed records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.groups.group import CommittedOffset
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.statemachine.coordinator_records import CoordinatorRecord, EndTransaction

Offsets = dict[TopicPartition, CommittedOffset]


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        #: By producer id, by group.
        self._pending: dict[int, dict[str, Offsets]] = {}
        #: By group and partition: the producer ids of pending offsets.
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}

    # Queries.

    def of_group(self, group_id: str) -> Offsets:
        """Return the committed offsets of a group; callers must not change them."""
        return self._committed.get(group_id, {})

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction may change this offset."""
        return partition in self._open.get(group_id, {})

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open

    def partitions_of(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions with a committed or pending offset."""
        return list(dict.fromkeys((*self.of_group(group_id), *self._open.get(group_id, {}))))

    def all_offsets(self) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        """Iterate over all committed and pending offsets."""
        for by_group in (self._committed, *self._pending.values()):
            for group_id, offsets in by_group.items():
                for partition, committed in offsets.items():
                    yield group_id, partition, committed

    # Replay.

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        self._committed.setdefault(group_id, {})[partition] = offset

    def put_pending(
        self, producer_id: int, group_id: str, partition: TopicPartition, offset: CommittedOffset
    ) -> None:
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {})[partition] = offset
        self._open.setdefault(group_id, {}).setdefault(partition, set()).add(producer_id)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        _drop(self._committed, group_id, partition)
        for producer_id in self._open.get(group_id, {}).get(partition, ()):
            _drop(self._pending.get(producer_id, {}), group_id, partition)
        _drop(self._open, group_id, partition)

    def end_transaction(self, end: EndTransaction) -> None:
        producer_id = end.producer.id
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            for partition, offset in offsets.items():
                self._close(group_id, partition, producer_id)
                known = self.of_group(group_id).get(partition)
                if end.committed and (known is None or offset.record_offset > known.record_offset):
                    self.put(group_id, partition, offset)

    def _close(self, group_id: str, partition: TopicPartition, producer_id: int) -> None:
        producers = self._open.get(group_id, {}).get(partition, set())
        producers.discard(producer_id)
        if not producers:
            _drop(self._open, group_id, partition)


def _drop(by_group: dict[str, dict[TopicPartition, Any]], group_id: str, partition: TopicPartition) -> None:
    """Remove one entry, and the group's if it has no others."""
    entries = by_group.get(group_id)
    if entries is not None:
        entries.pop(partition, None)
        if not entries:
            del by_group[group_id]


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    return CoordinatorRecord(key, None)


def stored_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    expires = value.expire_timestamp
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if expires == -1 else expires,
        value.topic_id,
        record_offset,
    )
