"""Find leaders of partitions and coordinators of groups, transactions and share groups in a cluster."""

from __future__ import annotations

from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

GROUP, TRANSACTION, SHARE = 0, 1, 2


def _bootstrap(cluster: Cluster) -> str:
    """Return the address of a running broker."""
    awake = next(node for node in cluster.brokers if node.running and not node.paused)
    return f"127.0.0.1:{awake.port}"


def coordinator_of(cluster: Cluster, key: str, kind: int = GROUP) -> int:
    def find() -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        with Wire(_bootstrap(cluster)) as wire:
            (found,) = wire.call(request, 6).coordinators
        return int(found.node_id) if found.error_code == 0 else 0

    return eventually(find, what=f"a coordinator of {key}")


def _partitions(cluster: Cluster, topic: str) -> list[MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    with Wire(_bootstrap(cluster)) as wire:
        (found,) = wire.call(request, 9).topics
    return list(found.partitions)


def replicas_of(cluster: Cluster, topic: str) -> dict[int, tuple[int, list[int]]]:
    """Return the leader and the replicas of each partition."""
    found = _partitions(cluster, topic)
    return {each.partition_index: (each.leader_id, list(each.replica_nodes)) for each in found}


def wait_until_in_sync(cluster: Cluster, *topics: str) -> None:
    """Wait until all replicas are in sync, so that any broker can be killed."""

    def in_sync() -> bool:
        found = [each for topic in topics for each in _partitions(cluster, topic)]
        return all(set(each.isr_nodes) == set(each.replica_nodes) for each in found)

    eventually(in_sync, what=f"all replicas of {topics} are in sync")


def leaders_of(cluster: Cluster, topic: str) -> dict[int, int]:
    return {index: leader for index, (leader, _) in replicas_of(cluster, topic).items()}
