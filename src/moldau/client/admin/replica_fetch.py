"""Fetch from a replica on any broker, for tools that compare replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from moldau.protocol.schema import records_view

#: The replica id of Kafka's debugging consumer, which may read any replica up to its high watermark.
_DEBUGGING_CONSUMER = -2
#: The first versions with topic ids, and with the struct ReplicaState.
_BY_ID_SINCE, _REPLICA_STATE_SINCE = 13, 15


class ReplicaData(NamedTuple):
    """Whole batches from the fetch offset on, as stored in the log."""

    high_watermark: int
    records: memoryview


class ReadLimits(NamedTuple):
    max_bytes: int
    max_wait_ms: int


async def read_replica(
    cluster: Cluster,
    broker: int,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, Uuid],
    limits: ReadLimits,
) -> dict[TopicPartition, ReplicaData | KafkaError]:
    """Fetch partitions of a broker from these offsets."""
    connection = await cluster.node_connection(broker)
    newest = connection.api_versions[ApiKey.FETCH].highest
    topics: dict[str, FetchTopic] = {}
    for (name, partition), offset in offsets.items():
        topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=topic_ids[name]))
        topic.partitions.append(
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limits.max_bytes)
        )
    request = FetchRequest(
        replica_id=_DEBUGGING_CONSUMER if newest < _REPLICA_STATE_SINCE else -1,
        replica_state=ReplicaState(replica_id=_DEBUGGING_CONSUMER if newest >= _REPLICA_STATE_SINCE else -1),
        max_wait_ms=limits.max_wait_ms,
        min_bytes=1,
        topics=list(topics.values()),
    )
    answer: FetchResponse = await connection.call(
        request, timeout_ms=limits.max_wait_ms + cluster.settings.request_timeout_ms
    )
    check(answer.error_code)
    names = {topic_ids[name]: name for name in topics}
    return {
        TopicPartition(topic.topic if newest < _BY_ID_SINCE else names[topic.topic_id], p.partition_index): (
            error_of(p.error_code) if p.error_code else ReplicaData(p.high_watermark, records_view(p.records))
        )
        for topic in answer.responses
        for p in topic.partitions
    }
