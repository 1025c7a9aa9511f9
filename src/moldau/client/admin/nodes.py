"""The cluster and its nodes: registrations, API versions, log directories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.network.client import VersionRange
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from moldau.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

BROKERS, CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True)
class NodeDescription:
    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`endpoint_type` is 1 for brokers, 2 for controllers."""

    cluster_id: str
    controller_id: int
    endpoint_type: int
    nodes: list[NodeDescription]


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    size: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    error: KafkaError | None
    replicas: dict[TopicPartition, ReplicaDescription]
    total_bytes: int
    usable_bytes: int


async def describe_cluster(cluster: Cluster, *, include_fenced: bool = False) -> ClusterDescription:
    """Describe the brokers, or the controllers if the client uses `bootstrap.controllers`."""
    endpoint_type = CONTROLLERS if cluster.settings.controllers else BROKERS
    request = DescribeClusterRequest(endpoint_type=endpoint_type, include_fenced_brokers=include_fenced)

    async def attempt() -> DescribeClusterResponse:
        answer: DescribeClusterResponse = await cluster.ask_any(request)
        check(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    nodes = [
        NodeDescription(b.broker_id, b.host, b.port, b.rack, b.is_fenced)
        for b in sorted(answer.brokers, key=lambda broker: broker.broker_id)
    ]
    return ClusterDescription(answer.cluster_id, answer.controller_id, answer.endpoint_type, nodes)


async def describe_log_dirs(
    cluster: Cluster, brokers: Iterable[int]
) -> dict[int, dict[str, LogDirDescription]]:
    """Return the replicas in all log directories of these brokers."""
    ids = list(brokers)
    found = await asyncio.gather(*(_log_dirs_of(cluster, broker) for broker in ids))
    return dict(zip(ids, found, strict=True))


async def node_versions(cluster: Cluster) -> dict[NodeDescription, dict[int, VersionRange] | KafkaError]:
    """Return the API versions of each node."""
    described = await describe_cluster(cluster)
    await cluster.retry(cluster.refresh)
    results: dict[NodeDescription, dict[int, VersionRange] | KafkaError] = {}
    for node in described.nodes:
        try:
            results[node] = (await cluster.node_connection(node.id)).api_versions
        except KafkaError as error:
            results[node] = error
    return results


async def unregister_broker(cluster: Cluster, broker: int) -> None:
    async def attempt() -> None:
        answer: UnregisterBrokerResponse = await cluster.ask_controller(
            UnregisterBrokerRequest(broker_id=broker)
        )
        check(answer.error_code, answer.error_message)

    await cluster.retry(attempt)


async def _log_dirs_of(cluster: Cluster, broker: int) -> dict[str, LogDirDescription]:
    answer: DescribeLogDirsResponse = await cluster.retry(
        lambda: cluster.ask_node(broker, DescribeLogDirsRequest(topics=None))
    )
    check(answer.error_code)
    return {
        result.log_dir: LogDirDescription(
            error_of(result.error_code) if result.error_code else None,
            {
                TopicPartition(topic.name, p.partition_index): ReplicaDescription(
                    p.partition_size, p.offset_lag, p.is_future_key
                )
                for topic in result.topics
                for p in topic.partitions
            },
            result.total_bytes,
            result.usable_bytes,
        )
        for result in answer.results
    }
