"""One Fetch request for many partitions of a leader, without a fetch session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.batches.types import FetchedBatches
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.records import iter_batches
from moldau.protocol.schema import records_view

#: The last version of Fetch with topic names.
_BY_NAME_UNTIL = 12


@dataclass(frozen=True, slots=True)
class FetchOptions:
    max_wait_ms: int
    max_bytes: int
    partition_max_bytes: int
    read_committed: bool


class FetchFrom(NamedTuple):
    topic_id: Uuid
    offset: int


async def fetch(
    cluster: Cluster, node: int, wanted: Mapping[TopicPartition, FetchFrom], options: FetchOptions
) -> dict[TopicPartition, PartitionData]:
    """Fetch partitions from their leader; wait up to `max_wait_ms` for the first record."""
    connection = await cluster.node_connection(node)
    version = connection.version_for(APIS[ApiKey.FETCH])
    if version is not None and any(each.topic_id == ZERO_UUID for each in wanted.values()):
        version = min(version, _BY_NAME_UNTIL)
    answer: FetchResponse = await connection.call(
        _request(wanted, options),
        version,
        timeout_ms=options.max_wait_ms + cluster.settings.request_timeout_ms,
    )
    check(answer.error_code)
    names = {each.topic_id: partition.topic for partition, each in wanted.items()}
    return {
        TopicPartition(topic.topic or names.get(topic.topic_id, ""), found.partition_index): found
        for topic in answer.responses
        for found in topic.partitions
    }


def fetched_batches(
    partition: TopicPartition, offset: int, found: PartitionData
) -> tuple[FetchedBatches, int]:
    """Return the batches of a response, and the offset after them."""
    data = records_view(found.records)
    next_offset = offset
    for _, header in iter_batches(data):
        next_offset = header.next_offset
    aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
    return FetchedBatches(partition, offset, data, aborted), next_offset


def _request(wanted: Mapping[TopicPartition, FetchFrom], options: FetchOptions) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for (name, index), begin in wanted.items():
        topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=begin.topic_id))
        topic.partitions.append(
            FetchPartition(
                partition=index, fetch_offset=begin.offset, partition_max_bytes=options.partition_max_bytes
            )
        )
    return FetchRequest(
        max_wait_ms=options.max_wait_ms,
        min_bytes=1,
        max_bytes=options.max_bytes,
        isolation_level=int(options.read_committed),
        topics=list(topics.values()),
    )
