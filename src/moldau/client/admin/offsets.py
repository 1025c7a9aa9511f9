"""Offsets of partitions (ListOffsets) and deletion of records (DeleteRecords)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from moldau.base import offsets
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import error_of
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


class OffsetSpec(IntEnum):
    """Special timestamps of ListOffsets; numbers from 0 are timestamps in milliseconds."""

    LATEST = offsets.LATEST
    EARLIEST = offsets.EARLIEST
    MAX_TIMESTAMP = offsets.MAX_TIMESTAMP
    EARLIEST_LOCAL = offsets.EARLIEST_LOCAL
    LATEST_TIERED = offsets.LATEST_TIERED
    EARLIEST_PENDING_UPLOAD = offsets.EARLIEST_PENDING_UPLOAD


class ListedOffset(NamedTuple):
    """`offset` is -1 if no record matches."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    """Return the offset of an `OffsetSpec`, or of the first record at or after a timestamp."""

    async def ask(
        node: int, group: dict[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, partition), timestamp in group.items():
            topic = topics.setdefault(name, ListOffsetsTopic(name=name))
            topic.partitions.append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=list(topics.values()),
            timeout_ms=cluster.settings.request_timeout_ms,
        )
        answer: ListOffsetsResponse = await cluster.ask_node(node, request)
        return {
            TopicPartition(topic_answer.name, p.partition_index): error_of(p.error_code)
            if p.error_code != ErrorCode.NONE
            else ListedOffset(p.offset, p.timestamp, p.leader_epoch)
            for topic_answer in answer.topics
            for p in topic_answer.partitions
        }

    return await cluster.ask_leaders(wanted, ask)


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KafkaError]:
    """Delete records before these offsets (-1: all); return the new low watermark of each partition."""

    async def ask(node: int, group: dict[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
        topics: dict[str, DeleteRecordsTopic] = {}
        for (name, partition), offset in group.items():
            topic = topics.setdefault(name, DeleteRecordsTopic(name=name))
            topic.partitions.append(DeleteRecordsPartition(partition_index=partition, offset=offset))
        request = DeleteRecordsRequest(
            topics=list(topics.values()), timeout_ms=cluster.settings.request_timeout_ms
        )
        answer: DeleteRecordsResponse = await cluster.ask_node(node, request)
        return {
            TopicPartition(topic_answer.name, p.partition_index): error_of(p.error_code)
            if p.error_code != ErrorCode.NONE
            else p.low_watermark
            for topic_answer in answer.topics
            for p in topic_answer.partitions
        }

    return await cluster.ask_leaders(before, ask)
