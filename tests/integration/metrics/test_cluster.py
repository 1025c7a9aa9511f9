"""Metrics of a cluster of three nodes: sums over the nodes, and what changes when a node is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.base.ids import TopicPartition as Place
from moldau.client.admin.client import AdminClient as OurAdminClient
from moldau.client.admin.client import checked
from tests.harness.nodes.leaders import coordinator_of, leaders_of, wait_until_in_sync
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

PARTITIONS = 6
RECORDS = 60
COMMITTED = 4


@pytest.fixture(scope="module")
def trio() -> Iterator[MeasuredCluster]:
    """Three nodes with a topic of three replicas and one without copies, and a group that lags in both."""
    with measured_cluster(brokers=3) as measured:
        servers: dict[str, str | int | float | bool] = {
            "bootstrap.servers": measured.cluster.bootstrap_servers
        }
        admin = AdminClient(servers)
        topics = [NewTopic("copied", PARTITIONS, 3), NewTopic("single", PARTITIONS, 1)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        producer = Producer(servers)
        for topic in ("copied", "single"):
            for number in range(RECORDS):
                producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        consumer = Consumer({**servers, "group.id": "lagging"})
        offsets = [
            TopicPartition(topic, partition, COMMITTED)
            for topic in ("copied", "single")
            for partition in range(PARTITIONS)
        ]
        eventually(lambda: consumer.commit(offsets=offsets, asynchronous=False))
        consumer.close()
        wait_until_in_sync(measured.cluster, "copied", "__consumer_offsets")
        yield measured


def test_sums_over_the_nodes_are_those_of_the_cluster(trio: MeasuredCluster) -> None:
    for topic in ("copied", "single"):
        assert trio.sums("kafka_server_brokertopicmetrics_messagesin_total", topic=topic) == RECORDS
        assert trio.sums("kafka_topic_partition_current_offset", topic=topic) == RECORDS
        assert trio.sums("kafka_topic_partitions", topic=topic) == PARTITIONS
    assert trio.sums("kafka_topic_partition_in_sync_replica", topic="copied") == 3 * PARTITIONS
    internal = trio.sums("kafka_topic_partitions", topic="__consumer_offsets")
    leaders = trio.sums("kafka_server_replicamanager_leadercount")
    assert leaders == internal + 2 * PARTITIONS
    assert trio.sums("kafka_controller_kafkacontroller_globalpartitioncount") == leaders
    assert trio.sums("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert trio.sums("kafka_brokers") == 3
    assert trio.sums("kafka_server_replicamanager_underreplicatedpartitions") == 0
    copied = trio.sums("kafka_server_brokertopicmetrics_bytesin_total", topic="copied")
    assert trio.sums("kafka_server_brokertopicmetrics_replicationbytesin_total") >= 2 * copied


@pytest.mark.parametrize("topic", ["copied", "single"])
def test_the_coordinator_reports_the_lag_of_a_group(trio: MeasuredCluster, topic: str) -> None:
    """Also for partitions without a replica on the coordinator's node."""
    coordinator = coordinator_of(trio.cluster, "lagging")
    labels = {"consumergroup": "lagging", "topic": topic}
    lag = RECORDS // PARTITIONS - COMMITTED

    def lags(node: int) -> list[float]:
        samples = trio.families(node=node)["kafka_consumergroup_lag"].samples
        return [each.value for each in samples if labels.items() <= each.labels.items()]

    eventually(lambda: lags(coordinator) == [lag] * PARTITIONS, timeout=20)
    others = [node.id for node in trio.cluster.nodes if node.id != coordinator]
    assert [lags(node) for node in others] == [[], []]
    assert trio.sums("kafka_consumergroup_current_offset_sum", **labels) == COMMITTED * PARTITIONS
    assert trio.sums("kafka_consumergroup_lag_sum", **labels) == lag * PARTITIONS
    assert trio.sums("kafka_consumergroup_members", consumergroup="lagging") == 0


def test_bytes_between_the_nodes_of_the_quorum_are_counted(trio: MeasuredCluster) -> None:
    """By the nodes that fetch metadata: the active controller only answers."""
    leader = int(trio.value("kafka_server_raft_metrics_current_leader"))
    follower = next(node.id for node in trio.cluster.nodes if node.id != leader)
    for prefix in ("kafka_server_raftchannelmetrics_", "kafka_server_raft_channel_metrics_"):
        sent, received = (
            trio.value(f"{prefix}{name}_byte_total", node=follower) for name in ("outgoing", "incoming")
        )
        responses = trio.value(f"{prefix}response_total", node=follower)
        # A request and a response have dozens of bytes each.
        assert sent > 20 * responses > 0
        assert received > 20 * responses


def test_followers_that_fetch_are_measured(trio: MeasuredCluster) -> None:
    name = "kafka_network_requestmetrics_totaltimems_count"
    assert trio.sums(name, request="FetchFollower") > 0
    assert trio.sums(name, request="Fetch") == pytest.approx(
        trio.sums(name, request="FetchFollower") + trio.sums(name, request="FetchConsumer"), abs=50
    )


def test_fetchers_and_elections_of_leaders_are_measured(trio: MeasuredCluster) -> None:
    lags = trio.families()["kafka_server_fetcherlagmetrics_consumerlag"].samples
    assert lags and {sample.labels["clientId"][:22] for sample in lags} == {"ReplicaFetcherThread-0"}
    manager = "kafka_server_replicafetchermanager_"
    eventually(lambda: trio.sums(f"{manager}minfetchrate", clientId="Replica") > 0, timeout=20)
    assert trio.sums(f"{manager}deadthreadcount") == 0
    elections = "kafka_controller_controllerstats_leaderelectionrateandtimems"
    count = trio.sums("moldau_controller_leader_elections_total")
    assert trio.sums(f"{elections}_count") == count
    raft = "kafka_server_raft_metrics_election_latency_"
    assert any(trio.value(f"{raft}max", node=node) > 0 for node in (1, 2, 3))


def test_bytes_of_a_reassignment_are_counted(trio: MeasuredCluster) -> None:
    """Of a replica that is added, not of those that follow all the time."""
    names = [f"kafka_server_brokertopicmetrics_reassignmentbytes{way}_total" for way in ("in", "out")]
    assert [trio.sums(name) for name in names] == [0, 0]
    leader = leaders_of(trio.cluster, "single")[0]
    other = next(node.id for node in trio.cluster.nodes if node.id != leader)
    place = Place("single", 0)
    with OurAdminClient(trio.cluster.bootstrap_servers) as admin:
        checked(admin.alter_partition_reassignments({place: [leader, other]}))
        eventually(lambda: not admin.list_partition_reassignments(), timeout=30)
        size = trio.sums("kafka_log_log_size", topic="single", partition="0") / 2
        assert [trio.sums(name) for name in names] == [size, size]
        checked(admin.alter_partition_reassignments({place: [leader]}))
        eventually(lambda: not admin.list_partition_reassignments(), timeout=30)


def test_a_killed_node_is_seen_by_the_others(trio: MeasuredCluster) -> None:
    """Its partitions are under-replicated or offline, and another node becomes the active controller."""
    cluster = trio.cluster
    victim = next(
        node.id
        for node in cluster.nodes
        if trio.value("kafka_controller_kafkacontroller_activecontrollercount", node=node.id) == 1
    )
    offline = sum(leader == victim for leader in leaders_of(cluster, "single").values())
    survivors = [node.id for node in cluster.nodes if node.id != victim]
    elections = "kafka_controller_kafkacontroller_newactivecontrollerscount"
    seen = [trio.value(elections, node=node) for node in survivors]
    assert min(seen) >= 1
    cluster.kill(victim)
    controller = "kafka_controller_kafkacontroller_"
    eventually(lambda: trio.sums(f"{controller}activecontrollercount") == 1, timeout=20)
    eventually(lambda: trio.sums(f"{controller}activebrokercount") == 2, timeout=20)
    eventually(lambda: trio.sums(f"{controller}offlinepartitionscount") == offline, timeout=20)
    assert trio.sums(f"{controller}fencedbrokercount") == 1
    assert all(
        trio.value(elections, node=node) > before for node, before in zip(survivors, seen, strict=True)
    )
    # Its process has ended, so its session did not have to expire.
    assert trio.sums(f"{controller}timedoutbrokerheartbeatcount") == 0
    assert trio.sums("moldau_controller_leader_elections_total") > 0
    under = "kafka_server_replicamanager_underreplicatedpartitions"
    replicated = PARTITIONS + trio.sums("kafka_topic_partitions", topic="__consumer_offsets")
    eventually(lambda: trio.sums(under) >= PARTITIONS, timeout=20)
    assert trio.sums("kafka_cluster_partition_underreplicated", topic="copied") == PARTITIONS
    assert trio.sums("kafka_cluster_partition_atminisr", topic="copied") == PARTITIONS
    assert trio.sums("kafka_controller_controllerstats_uncleanleaderelections_total") == 0
    assert trio.sums(under) <= replicated + PARTITIONS
    cluster.restart(victim)
    eventually(lambda: trio.sums(under) == 0, timeout=30)
    eventually(lambda: trio.sums(f"{controller}offlinepartitionscount") == 0, timeout=20)
    assert trio.sums("kafka_server_replicamanager_isrexpands_total") >= PARTITIONS
    assert trio.readiness(victim) == (200, [])
    assert time.time() - trio.value("process_start_time_seconds", node=victim) < 60
