"""Which broker of a cluster leads a partition, or coordinates a group, a transaction or a share partition."""

from __future__ import annotations

from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.harness.wire import Wire

GROUP, TRANSACTION, SHARE = 0, 1, 2


def _bootstrap(cluster: Cluster) -> str:
    """Of a broker that answers."""
    awake = next(node for node in cluster.brokers if node.running and not node.paused)
    return f"127.0.0.1:{awake.port}"


def coordinator_of(cluster: Cluster, key: str, kind: int = GROUP) -> int:
    def find() -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (found,) = Wire(_bootstrap(cluster)).call(request, 6).coordinators
        return int(found.node_id) if found.error_code == 0 else 0

    return eventually(find, what=f"a coordinator of {key}")


def replicas_of(cluster: Cluster, topic: str) -> dict[int, tuple[int, list[int]]]:
    """The leader and the replicas of each partition."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = Wire(_bootstrap(cluster)).call(request, 9).topics
    return {each.partition_index: (each.leader_id, list(each.replica_nodes)) for each in found.partitions}


def leaders_of(cluster: Cluster, topic: str) -> dict[int, int]:
    return {index: leader for index, (leader, _) in replicas_of(cluster, topic).items()}
