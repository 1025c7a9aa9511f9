"""Offsets: those that groups have committed, and the first and last ones of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import ask as ask_version
from moldau.client.wire.errors import check, error_of
from moldau.lag.collection.batches import MAX_GROUPS, MAX_PARTITIONS, Batches
from moldau.lag.collection.groups import Listed
from moldau.lag.evaluation.observation import SHARE, CommittedOffset
from moldau.protocol.apis import APIS
from moldau.protocol.messages import describe_share_group_offsets as share
from moldau.protocol.messages import list_offsets, offset_fetch
from moldau.protocol.stored.pipeline_markers import is_marker

#: The newest version with topic names, and the first one with several groups.
_BY_NAME: Final = 9
_BATCHED_SINCE: Final = 8


class Committed(NamedTuple):
    """The committed offsets of a group, and the partitions whose offset could not be read."""

    offsets: dict[TopicPartition, CommittedOffset]
    unread: frozenset[TopicPartition] = frozenset()


async def committed_offsets(
    cluster: Cluster, batches: Batches, groups: Iterable[Listed]
) -> dict[str, Committed | KafkaError]:
    """Return the committed offsets of groups; of share groups, the start offsets and the broker's lag."""
    consumers: dict[int, list[str]] = {}
    shares: dict[int, list[str]] = {}
    for each in groups:
        (shares if each.type == SHARE else consumers).setdefault(each.node, []).append(each.group)

    async def ask_consumers(node: int, names: Sequence[str]) -> dict[str, Committed | KafkaError]:
        return await _consumer_offsets(cluster, node, names)

    async def ask_shares(node: int, names: Sequence[str]) -> dict[str, Committed | KafkaError]:
        return await _share_offsets(cluster, node, names)

    found = await batches.send(consumers, MAX_GROUPS, ask_consumers)
    return found | await batches.send(shares, MAX_GROUPS, ask_shares)


async def _consumer_offsets(
    cluster: Cluster, node: int, names: Sequence[str]
) -> dict[str, Committed | KafkaError]:
    connection = await cluster.node_connection(node)
    version = connection.version_for(APIS[offset_fetch.OffsetFetchRequest.API_KEY])
    if version is not None and version < _BATCHED_SINCE:
        return {name: await _offsets_of_one(cluster, node, name) for name in names}
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    request = offset_fetch.OffsetFetchRequest(groups=asked)
    answer: offset_fetch.OffsetFetchResponse = await ask_version(cluster, connection, request, _BY_NAME)
    return {
        group.group_id: error_of(group.error_code) if group.error_code else _committed(group.topics)
        for group in answer.groups
    }


async def _offsets_of_one(cluster: Cluster, node: int, name: str) -> Committed | KafkaError:
    """Ask a broker before Apache Kafka 3.0, which takes one group per request."""
    request = offset_fetch.OffsetFetchRequest(group_id=name, topics=None)
    try:
        answer: offset_fetch.OffsetFetchResponse = await cluster.ask_node(node, request)
        check(answer.error_code)
    except KafkaError as error:
        return error
    return _committed(answer.topics)


def _committed(
    topics: Iterable[offset_fetch.OffsetFetchResponseTopics | offset_fetch.OffsetFetchResponseTopic],
) -> Committed:
    found = [
        (TopicPartition(topic.name, each.partition_index), each)
        for topic in topics
        for each in topic.partitions
    ]
    return Committed(
        {
            partition: CommittedOffset(each.committed_offset)
            for partition, each in found
            if each.committed_offset >= 0 and not each.error_code and not is_marker(each.metadata)
        },
        frozenset(partition for partition, each in found if each.error_code),
    )


async def _share_offsets(
    cluster: Cluster, node: int, names: Sequence[str]
) -> dict[str, Committed | KafkaError]:
    asked = [share.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
    answer: share.DescribeShareGroupOffsetsResponse = await cluster.ask_node(
        node, share.DescribeShareGroupOffsetsRequest(groups=asked)
    )
    return {
        group.group_id: error_of(group.error_code, group.error_message)
        if group.error_code
        else _share_committed(group)
        for group in answer.groups
    }


def _share_committed(group: share.DescribeShareGroupOffsetsResponseGroup) -> Committed:
    found = [
        (TopicPartition(topic.topic_name, each.partition_index), each)
        for topic in group.topics
        for each in topic.partitions
    ]
    return Committed(
        {
            partition: CommittedOffset(each.start_offset, None if each.lag < 0 else each.lag)
            for partition, each in found
            if each.start_offset >= 0 and not each.error_code
        },
        frozenset(partition for partition, each in found if each.error_code),
    )


async def partition_offsets(
    cluster: Cluster,
    batches: Batches,
    leaders: Mapping[TopicPartition, int],
    wanted: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the offsets of timestamps, or of LATEST and EARLIEST, in partitions whose leaders answer.

    The offset is that of the first record that is not older than the timestamp; -1 if there is none.
    """
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in wanted:
        if (leader := leaders.get(partition, -1)) >= 0:
            by_leader.setdefault(leader, []).append(partition)

    async def ask(node: int, keys: Sequence[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        return await _list_offsets(cluster, node, {each: wanted[each] for each in keys})

    answers = await batches.send(by_leader, MAX_PARTITIONS, ask)
    return {partition: offset for partition, offset in answers.items() if isinstance(offset, int)}


async def _list_offsets(
    cluster: Cluster, node: int, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KafkaError]:
    topics: dict[str, list_offsets.ListOffsetsTopic] = {}
    for (name, index), timestamp in wanted.items():
        topic = topics.setdefault(name, list_offsets.ListOffsetsTopic(name=name))
        topic.partitions.append(list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=list(topics.values()), timeout_ms=cluster.settings.request_timeout_ms
    )
    answer: list_offsets.ListOffsetsResponse = await cluster.ask_node(node, request)
    return {
        TopicPartition(each.name, p.partition_index): error_of(p.error_code)
        if p.error_code != ErrorCode.NONE
        else p.offset
        for each in answer.topics
        for p in each.partitions
    }
