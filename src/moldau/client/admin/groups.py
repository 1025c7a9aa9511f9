"""Groups: list, describe, delete; read, alter and delete offsets; remove members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import (
    GroupDescription,
    GroupListing,
    by_topic,
    from_classic,
    from_consumer,
)
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, ask_coordinator, coordinator_id, each_of
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages import offset_commit, offset_delete, offset_fetch
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

#: The newest versions with topic names.
_FETCH_BY_NAME = 9
_COMMIT_BY_NAME = 9
#: Another coordinator, or a loaded one, will answer.
_COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
#: Not a consumer group, or a broker without KIP-848.
_NOT_CONSUMER_GROUP = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})

Offsets = dict[TopicPartition, OffsetAndMetadata | KafkaError]


async def list_groups(
    cluster: Cluster, *, types: Iterable[str] = (), states: Iterable[str] = ()
) -> list[GroupListing]:
    """Return all groups of the cluster, or those of some types and states."""
    await cluster.retry(cluster.refresh)
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found: dict[str, GroupListing] = {}
    for node in sorted(cluster.nodes):

        async def attempt(node: int = node) -> ListGroupsResponse:
            answer: ListGroupsResponse = await cluster.ask_node(node, request)
            check(answer.error_code)
            return answer

        for each in (await cluster.retry(attempt)).groups:
            found[each.group_id] = GroupListing(
                each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize()
            )
    return [found[group_id] for group_id in sorted(found)]


async def describe_groups(
    cluster: Cluster, groups: Iterable[str]
) -> dict[str, GroupDescription | KafkaError]:
    """Describe groups with their members. A group that does not exist has the state Dead."""
    return await each_of(list(groups), lambda group: _describe(cluster, group))


async def _describe(cluster: Cluster, group: str) -> GroupDescription:
    try:
        return await _describe_consumer(cluster, group)
    except KafkaError as error:
        if error.code not in _NOT_CONSUMER_GROUP:
            raise
    return await _describe_classic(cluster, group)


async def _describe_consumer(cluster: Cluster, group: str) -> GroupDescription:
    def read(answer: ConsumerGroupDescribeResponse) -> GroupDescription:
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        return from_consumer(found, -1)

    request = ConsumerGroupDescribeRequest(group_ids=[group])
    return await _located(cluster, await ask_coordinator(cluster, GROUP, group, request, read))


async def _describe_classic(cluster: Cluster, group: str) -> GroupDescription:
    def read(answer: DescribeGroupsResponse) -> GroupDescription:
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        return from_classic(found, -1)

    request = DescribeGroupsRequest(groups=[group])
    return await _located(cluster, await ask_coordinator(cluster, GROUP, group, request, read))


async def _located(cluster: Cluster, group: GroupDescription) -> GroupDescription:
    return replace(group, coordinator=await coordinator_id(cluster, GROUP, group.group_id))


async def list_group_offsets(
    cluster: Cluster,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> Offsets:
    """Return the committed offsets of a group, for all its partitions by default."""
    topics = None
    if partitions is not None:
        topics = [
            offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(list(partitions)).items()
        ]
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
    request = offset_fetch.OffsetFetchRequest(groups=[asked], require_stable=require_stable)

    def read(answer: offset_fetch.OffsetFetchResponse) -> Offsets:
        found = answer.groups[0]
        check(found.error_code)
        return {
            TopicPartition(topic.name, each.partition_index): _committed(each)
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0 or each.error_code
        }

    return await ask_coordinator(cluster, GROUP, group, request, read, newest=_FETCH_BY_NAME)


async def alter_group_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
) -> dict[TopicPartition, KafkaError | None]:
    """Set committed offsets of a group without members."""
    topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
    for (name, index), wanted in offsets.items():
        at = wanted if isinstance(wanted, OffsetAndMetadata) else OffsetAndMetadata(wanted)
        topic = topics.setdefault(name, offset_commit.OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=at.offset,
                committed_leader_epoch=-1 if at.leader_epoch is None else at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )
    request = offset_commit.OffsetCommitRequest(group_id=group, topics=list(topics.values()))

    def read(answer: offset_commit.OffsetCommitResponse) -> dict[TopicPartition, KafkaError | None]:
        results = _results((topic.name, topic.partitions) for topic in answer.topics)
        for error in results.values():
            # The answer has no error of its own: what is wrong with the coordinator, all partitions say.
            if error is not None and error.code in _COORDINATOR_ERRORS:
                raise error
        return results

    return await ask_coordinator(cluster, GROUP, group, request, read, newest=_COMMIT_BY_NAME)


async def delete_group_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete committed offsets of partitions that no member is subscribed to."""
    topics = [
        offset_delete.OffsetDeleteRequestTopic(
            name=name,
            partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
        )
        for name, indexes in by_topic(list(partitions)).items()
    ]
    request = offset_delete.OffsetDeleteRequest(group_id=group, topics=topics)

    def read(answer: offset_delete.OffsetDeleteResponse) -> dict[TopicPartition, KafkaError | None]:
        check(answer.error_code)
        return _results((topic.name, topic.partitions) for topic in answer.topics)

    return await ask_coordinator(cluster, GROUP, group, request, read)


async def delete_groups(cluster: Cluster, groups: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete groups without members, including their offsets."""

    async def delete(group: str) -> None:
        def read(answer: DeleteGroupsResponse) -> None:
            check(answer.results[0].error_code)

        request = DeleteGroupsRequest(groups_names=[group])
        return await ask_coordinator(cluster, GROUP, group, request, read)

    return await each_of(list(groups), delete)


async def remove_members_from_group(
    cluster: Cluster, group: str, instance_ids: Iterable[str] | None = None, *, reason: str | None = None
) -> dict[str, KafkaError | None]:
    """Remove static members, or all members (None), from a classic group."""
    if instance_ids is None:
        described = await _describe_classic(cluster, group)
        members = [
            MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
            for each in described.members
        ]
    else:
        members = [MemberIdentity(group_instance_id=each, reason=reason) for each in instance_ids]
    request = LeaveGroupRequest(group_id=group, members=members)

    def read(answer: LeaveGroupResponse) -> dict[str, KafkaError | None]:
        check(answer.error_code)
        return {each.group_instance_id or each.member_id: _error(each.error_code) for each in answer.members}

    return await ask_coordinator(cluster, GROUP, group, request, read)


def _committed(
    partition: offset_fetch.OffsetFetchResponsePartitions,
) -> OffsetAndMetadata | KafkaError:
    if partition.error_code:
        return error_of(partition.error_code)
    epoch = partition.committed_leader_epoch
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", None if epoch < 0 else epoch
    )


def _results(
    topics: Iterable[
        tuple[
            str,
            Iterable[
                offset_commit.OffsetCommitResponsePartition | offset_delete.OffsetDeleteResponsePartition
            ],
        ]
    ],
) -> dict[TopicPartition, KafkaError | None]:
    return {
        TopicPartition(name, each.partition_index): _error(each.error_code)
        for name, partitions in topics
        for each in partitions
    }


def _error(code: int) -> KafkaError | None:
    return error_of(code) if code else None
