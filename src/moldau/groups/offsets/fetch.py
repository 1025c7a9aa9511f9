"""OffsetFetch for one group: the offsets of some partitions, or of all."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.groups.group import CommittedOffset
from moldau.groups.offsets.store import OffsetStore
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NO_OFFSET = -1


class OffsetFetches:
    def __init__(self, registry: GroupRegistry, store: OffsetStore) -> None:
        self._registry = registry
        self._store = store

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """Return the committed offsets; an unknown group has none, which is not an error."""
        known = self._may_read(request)
        if request.topics is None:
            topics = self._all_of(request.group_id) if known else []
        else:
            topics = request.topics
        return OffsetFetchResponseGroup(
            group_id=request.group_id,
            topics=[self._topic(request.group_id, each, require_stable, known) for each in topics],
        )

    def _may_read(self, request: OffsetFetchRequestGroup) -> bool:
        group = self._registry.find(request.group_id)
        if group is None:
            return False
        try:
            group.check_offset_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return False
            raise
        return True

    def _all_of(self, group_id: str) -> list[OffsetFetchRequestTopics]:
        by_topic: dict[str, list[int]] = {}
        for partition in self._store.of_group(group_id):
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        return [
            OffsetFetchRequestTopics(name=name, topic_id=ZERO_UUID, partition_indexes=sorted(indexes))
            for name, indexes in by_topic.items()
        ]

    def _topic(
        self, group_id: str, topic: OffsetFetchRequestTopics, require_stable: bool, known: bool
    ) -> OffsetFetchResponseTopics:
        offsets = self._store.of_group(group_id) if known else {}
        partitions = []
        for index in topic.partition_indexes:
            partition = TopicPartition(topic.name, index)
            if require_stable and self._store.is_unstable(group_id, partition):
                partitions.append(_none(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                partitions.append(_partition_response(index, offsets.get(partition), topic.topic_id))
        return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition_response(
    index: int, offset: CommittedOffset | None, topic_id: Uuid
) -> OffsetFetchResponsePartitions:
    """Omit an offset that was committed for an earlier topic with the same name."""
    if offset is None or (ZERO_UUID not in (offset.topic_id, topic_id) and offset.topic_id != topic_id):
        return _none(index)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def _none(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=code
    )
