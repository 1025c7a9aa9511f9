"""Groups of all types: which there are, on which coordinator, and who their members are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import GroupDescription, from_classic, from_consumer
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.lag.collection.batches import MAX_GROUPS, Batches
from moldau.lag.evaluation.observation import CLASSIC, CONSUMER, SHARE, STREAMS, Member
from moldau.protocol.messages import (
    consumer_group_describe,
    share_group_describe,
    streams_group_describe,
)
from moldau.protocol.messages import describe_groups as describe_groups_api
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

#: Protocol types of groups that commit offsets. Groups of Connect workers or registries do not.
_READERS: Final = frozenset({"", "consumer", "share", "streams"})
#: A group in these states has no members, so that it need not be described.
_WITHOUT_MEMBERS: Final = frozenset({"empty", "dead"})


class Listed(NamedTuple):
    """A group and the broker that coordinates it: the one that lists it."""

    group: str
    type: str
    state: str
    node: int


class Described(NamedTuple):
    state: str
    members: tuple[Member, ...]
    epoch: int | None = None


async def list_groups(cluster: Cluster, batches: Batches) -> tuple[list[Listed], list[KafkaError]]:
    """Return the groups of all brokers that answer, and the errors of the others."""

    async def ask(node: int, keys: Sequence[int]) -> dict[int, list[Listed] | KafkaError]:
        answer: ListGroupsResponse = await cluster.ask_node(node, ListGroupsRequest())
        check(answer.error_code)
        return {
            node: [
                Listed(each.group_id, each.group_type.lower() or CLASSIC, each.group_state, node)
                for each in answer.groups
                if each.protocol_type in _READERS
            ]
        }

    answers = await batches.send({node: [node] for node in sorted(cluster.nodes)}, 1, ask)
    groups: dict[str, Listed] = {}
    errors: list[KafkaError] = []
    for answer in answers.values():
        if isinstance(answer, KafkaError):
            errors.append(answer)
        else:
            groups.update((each.group, each) for each in answer)
    return list(groups.values()), errors


async def describe_groups(
    cluster: Cluster, batches: Batches, groups: Iterable[Listed]
) -> dict[str, Described | KafkaError]:
    """Describe the groups that may have members."""
    found: dict[str, Described | KafkaError] = {}
    by_type: dict[str, dict[int, list[str]]] = {}
    for each in groups:
        if each.state.lower() in _WITHOUT_MEMBERS:
            found[each.group] = Described(each.state, ())
        else:
            by_type.setdefault(each.type, {}).setdefault(each.node, []).append(each.group)
    for kind, by_node in by_type.items():

        async def ask(node: int, names: Sequence[str], kind: str = kind) -> dict[str, Described | KafkaError]:
            return await _describe(cluster, kind, node, list(names))

        found |= await batches.send(by_node, MAX_GROUPS, ask)
    return found


async def _describe(
    cluster: Cluster, kind: str, node: int, names: list[str]
) -> dict[str, Described | KafkaError]:
    if kind == CONSUMER:
        answer = await cluster.ask_node(
            node, consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=names)
        )
        return {each.group_id: _error(each) or _named(from_consumer(each, node)) for each in answer.groups}
    if kind == SHARE:
        answer = await cluster.ask_node(node, share_group_describe.ShareGroupDescribeRequest(group_ids=names))
        return {each.group_id: _error(each) or _share(each) for each in answer.groups}
    if kind == STREAMS:
        request = streams_group_describe.StreamsGroupDescribeRequest(group_ids=names)
        answer = await cluster.ask_node(node, request)
        return {each.group_id: _error(each) or streams_description(each) for each in answer.groups}
    answer = await cluster.ask_node(node, describe_groups_api.DescribeGroupsRequest(groups=names))
    return {each.group_id: _error(each) or _named(from_classic(each, node)) for each in answer.groups}


def _error(
    group: describe_groups_api.DescribedGroup
    | consumer_group_describe.DescribedGroup
    | share_group_describe.DescribedGroup
    | streams_group_describe.DescribedGroup,
) -> KafkaError | None:
    return error_of(group.error_code, group.error_message) if group.error_code else None


def _named(group: GroupDescription) -> Described:
    members = tuple(
        Member(each.member_id, each.client_id, each.host, frozenset(each.assignment))
        for each in group.members
    )
    return Described(group.state, members, group.group_epoch)


def _share(group: share_group_describe.DescribedGroup) -> Described:
    members = tuple(
        Member(
            each.member_id,
            each.client_id,
            each.client_host,
            frozenset(
                TopicPartition(topic.topic_name, index)
                for topic in each.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for each in group.members
    )
    return Described(group.group_state, members, group.group_epoch)


def streams_description(group: streams_group_describe.DescribedGroup) -> Described:
    """A task reads one partition of each source topic of its subtopology (KIP-1071)."""
    sources: dict[str, list[str]] = {}
    for each in (group.topology.subtopologies if group.topology else None) or ():
        repartitioned = [topic.name for topic in each.repartition_source_topics]
        sources[each.subtopology_id] = [*each.source_topics, *repartitioned]
    members = tuple(
        Member(
            member.member_id,
            member.client_id,
            member.client_host,
            frozenset(
                TopicPartition(topic, index)
                for tasks in member.assignment.active_tasks
                for topic in sources.get(tasks.subtopology_id, ())
                for index in tasks.partitions
            ),
        )
        for member in group.members
    )
    return Described(group.group_state, members, group.group_epoch)
