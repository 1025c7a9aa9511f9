"""The requests of a refresh: their number depends on the brokers, not on topics, groups or viewers.

A broker that does not answer leaves gaps; everything the others know is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from moldau.base import offsets as special
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition
from moldau.client.admin.configs import ConfigResource, ResourceType, describe_configs
from moldau.client.admin.group_types import GroupListing
from moldau.client.admin.nodes import LogDirDescription, describe_cluster, describe_log_dirs
from moldau.client.admin.quorum import QuorumDescription, describe_metadata_quorum
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check
from moldau.console.cluster.snapshot import Broker, LogDirectory, Partition, Snapshot, Topic
from moldau.lag.collection.batches import Batches
from moldau.lag.collection.offsets import partition_offsets
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.protocol.messages.metadata import MetadataResponse

#: Refreshes between two requests of what changes rarely.
_RARELY: Final = 10
#: How long groups stay in the list without their coordinator.
_GROUPS_KEPT_MS: Final = 30_000
_TOPICS_PER_REQUEST: Final = 500
_POLICY: Final = "cleanup.policy"


class _Offsets(NamedTuple):
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class _ListedGroup(NamedTuple):
    """A group, the broker that has listed it, and when."""

    group: GroupListing
    node: int
    time_ms: int


class Collection:
    """Collects snapshots, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rounds = 0
        self._policies: dict[str, str] = {}
        self._seen: dict[int, Broker] = {}
        self._quorum: QuorumDescription | None = None
        self._listed: dict[str, _ListedGroup] = {}

    async def collect(self, time_ms: int, version: int) -> Snapshot:
        """Send the requests of a refresh; `KafkaError` if no broker can be reached."""
        metadata = await self._metadata()
        rarely = self._rounds % _RARELY == 0
        self._rounds += 1
        if rarely:
            self._policies.clear()
        offsets, directories, groups, quorum, _, brokers = await asyncio.gather(
            self._offsets(metadata),
            self._directories(),
            self._groups(time_ms),
            self._describe_quorum(),
            self._read_policies(metadata),
            self._brokers(metadata),
        )
        topics = _topics(metadata, offsets, directories, self._policies)
        return Snapshot(
            version=version,
            time_ms=time_ms,
            cluster_id=metadata.cluster_id,
            controller_id=metadata.controller_id if quorum is None else quorum.leader_id,
            brokers=tuple(_with_directories(each, directories.get(each.id)) for each in brokers),
            topics=topics,
            groups=groups,
            quorum=quorum,
        )

    async def _metadata(self) -> MetadataResponse:
        try:
            return await self._cluster.metadata(None)
        except KafkaError:
            # The connection may have been that of a broker that is gone: any other can answer.
            return await self._cluster.metadata(None)

    async def _offsets(self, metadata: MetadataResponse) -> _Offsets:
        leaders = {
            TopicPartition(topic.name or "", each.partition_index): each.leader_id
            for topic in metadata.topics
            for each in topic.partitions
        }
        batches = Batches()
        starts, ends = await asyncio.gather(
            *(
                partition_offsets(self._cluster, batches, leaders, dict.fromkeys(leaders, at))
                for at in (special.EARLIEST, special.LATEST)
            )
        )
        return _Offsets(starts, ends)

    async def _directories(self) -> dict[int, dict[str, LogDirDescription]]:
        async def ask(broker: int) -> tuple[int, dict[str, LogDirDescription] | None]:
            try:
                return broker, (await describe_log_dirs(self._cluster, [broker]))[broker]
            except KafkaError:
                return broker, None

        found = await asyncio.gather(*(ask(broker) for broker in sorted(self._cluster.nodes)))
        return {broker: described for broker, described in found if described is not None}

    async def _groups(self, time_ms: int) -> dict[str, GroupListing]:
        """List the groups; one without a coordinator that answers stays until another has loaded it."""

        async def ask(node: int) -> ListGroupsResponse | None:
            try:
                answer: ListGroupsResponse = await self._cluster.ask_node(node, ListGroupsRequest())
                check(answer.error_code)
            except KafkaError:
                return None
            return answer

        nodes = sorted(self._cluster.nodes)
        answers = dict(zip(nodes, await asyncio.gather(*map(ask, nodes)), strict=True))
        found = {
            each.group_id: _ListedGroup(
                GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize()
                ),
                node,
                time_ms,
            )
            for node, answer in answers.items()
            if answer is not None
            for each in answer.groups
        }
        for name, listed in self._listed.items():
            complete = answers.get(listed.node) is not None and None not in answers.values()
            if not complete and time_ms - listed.time_ms < _GROUPS_KEPT_MS:
                found.setdefault(name, listed)
        self._listed = found
        return {name: found[name].group for name in sorted(found)}

    async def _describe_quorum(self) -> QuorumDescription | None:
        """Describe the quorum; None without permission, or if the cluster has none."""
        try:
            self._quorum = await describe_metadata_quorum(self._cluster)
        except KafkaError as error:
            if not error.code.retriable:
                self._quorum = None
        return self._quorum

    async def _read_policies(self, metadata: MetadataResponse) -> None:
        """Read `cleanup.policy` of topics that are new since the last time."""
        missing = [
            topic.name
            for topic in metadata.topics
            if topic.name and not topic.error_code and topic.name not in self._policies
        ]
        for begin in range(0, len(missing), _TOPICS_PER_REQUEST):
            part = missing[begin : begin + _TOPICS_PER_REQUEST]
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in part]
            try:
                answers = await describe_configs(self._cluster, resources)
            except KafkaError:
                return
            for resource, entries in answers.items():
                if isinstance(entries, KafkaError):
                    continue
                value = next((each.value for each in entries if each.name == _POLICY), None)
                self._policies[resource.name] = value or ""

    async def _brokers(self, metadata: MetadataResponse) -> Sequence[Broker]:
        """Return the brokers that are online, and those that are fenced or only named as replicas."""
        online = {
            each.node_id: Broker(each.node_id, each.host, each.port, each.rack, online=True)
            for each in metadata.brokers
        }
        found = dict(online)
        try:
            described = await describe_cluster(self._cluster, include_fenced=True)
        except KafkaError:
            pass
        else:
            for node in described.nodes:
                known = Broker(node.id, node.host, node.port, node.rack, online=not node.fenced)
                found[node.id] = online.get(node.id, known) if not node.fenced else known
        for broker in _replicas(metadata):
            if broker not in found:
                known = self._seen.get(broker, Broker(broker, "", 0, None, online=False))
                found[broker] = replace(known, online=False)
        self._seen |= {each.id: each for each in found.values() if each.host}
        return [found[id] for id in sorted(found)]


def _replicas(metadata: MetadataResponse) -> set[int]:
    return {broker for topic in metadata.topics for each in topic.partitions for broker in each.replica_nodes}


def _with_directories(broker: Broker, described: Mapping[str, LogDirDescription] | None) -> Broker:
    if described is None:
        return broker
    return replace(
        broker,
        size=sum(replica.size for each in described.values() for replica in each.replicas.values()),
        directories=tuple(
            LogDirectory(
                path, each.total_bytes, each.usable_bytes, None if each.error is None else str(each.error)
            )
            for path, each in sorted(described.items())
        ),
    )


def _topics(
    metadata: MetadataResponse,
    offsets: _Offsets,
    directories: Mapping[int, Mapping[str, LogDirDescription]],
    policies: Mapping[str, str],
) -> dict[str, Topic]:
    sizes = {
        (broker, partition): replica.size
        for broker, described in directories.items()
        for each in described.values()
        for partition, replica in each.replicas.items()
        if not replica.future
    }
    found: dict[str, Topic] = {}
    for topic in sorted(metadata.topics, key=lambda topic: topic.name or ""):
        name = topic.name
        if name is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        partitions = []
        for each in sorted(topic.partitions, key=lambda each: each.partition_index):
            at = TopicPartition(name, each.partition_index)
            partitions.append(
                Partition(
                    each.partition_index,
                    each.leader_id,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    offsets.starts.get(at),
                    offsets.ends.get(at),
                    sizes.get((each.leader_id, at)),
                )
            )
        found[name] = Topic(
            name, topic.topic_id or ZERO_UUID, topic.is_internal, tuple(partitions), policies.get(name)
        )
    return found


def end_offsets(topics: Iterable[Topic]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, each.index): each.end
        for topic in topics
        for each in topic.partitions
        if each.end is not None
    }
