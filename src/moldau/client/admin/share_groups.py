"""Share groups (KIP-932): describe; read, alter and delete offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, ask_coordinator, coordinator_id
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
)
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


class ShareOffset(NamedTuple):
    """The offsets of a group in a partition; None if unknown."""

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class ShareGroupDescription(NamedTuple):
    group: DescribedGroup
    coordinator: int


async def describe_share_group(cluster: Cluster, group: str) -> ShareGroupDescription:
    def read(answer: ShareGroupDescribeResponse) -> DescribedGroup:
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        return found

    request = ShareGroupDescribeRequest(group_ids=[group])
    described = await ask_coordinator(cluster, GROUP, group, request, read)
    return ShareGroupDescription(described, await coordinator_id(cluster, GROUP, group))


async def share_group_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, ShareOffset]:
    """Return the offsets of all partitions of the group."""

    def read(
        answer: describe_share_group_offsets.DescribeShareGroupOffsetsResponse,
    ) -> dict[TopicPartition, ShareOffset]:
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        return {
            TopicPartition(topic.topic_name, each.partition_index): ShareOffset(
                each.start_offset, each.leader_epoch, None if each.lag < 0 else each.lag
            )
            if each.start_offset >= 0
            else ShareOffset(None, None, None)
            for topic in found.topics
            for each in topic.partitions
            if each.error_code == 0
        }

    asked = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[asked])
    return await ask_coordinator(cluster, GROUP, group, request, read)


async def alter_share_group_offsets_of(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Alter offsets; raise the first error."""
    module = alter_share_group_offsets
    topics: dict[str, module.AlterShareGroupOffsetsRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.setdefault(name, module.AlterShareGroupOffsetsRequestTopic(topic_name=name))
        topic.partitions.append(
            module.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        )

    def read(answer: module.AlterShareGroupOffsetsResponse) -> None:
        check(answer.error_code, answer.error_message)
        for topic in answer.responses:
            for partition in topic.partitions:
                check(partition.error_code, partition.error_message)

    request = module.AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values()))
    await ask_coordinator(cluster, GROUP, group, request, read)


async def delete_share_group_offsets_of(
    cluster: Cluster, group: str, topics: Iterable[str]
) -> dict[str, KafkaError | None]:
    """Delete the offsets of topics; return None or the error for each."""
    module = delete_share_group_offsets

    def read(answer: module.DeleteShareGroupOffsetsResponse) -> dict[str, KafkaError | None]:
        check(answer.error_code, answer.error_message)
        return {
            each.topic_name: error_of(each.error_code, each.error_message) if each.error_code else None
            for each in answer.responses
        }

    asked = [module.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    request = module.DeleteShareGroupOffsetsRequest(group_id=group, topics=asked)
    return await ask_coordinator(cluster, GROUP, group, request, read)
