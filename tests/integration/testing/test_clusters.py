"""`moldau.testing.Cluster(brokers=3)`: several nodes that are killed, paused, restarted and cut off."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from moldau.config.properties import load_properties
from moldau.testing import Cluster, NodeFailed
from tests.harness.clients.feed import create as create_everywhere
from tests.harness.waiting import eventually

#: Timeouts for tests that wait until the cluster gives a silent node up.
IMPATIENT = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 300,
    "replica.lag.time.max.ms": 3000,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, config=IMPATIENT) as running:
        yield running


@pytest.fixture
def whole(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with everything in order, before and after."""
    cluster.wait_for_brokers(60)
    yield cluster
    cluster.heal()
    for node in cluster.nodes:
        if node.paused:
            node.resume()
    cluster.start()


def create(cluster: Cluster, topic: str) -> None:
    create_everywhere(cluster, topic, partitions=3)


def in_sync(cluster: Cluster, topic: str) -> list[set[int]]:
    return in_sync_at(cluster.bootstrap_servers, topic)


def produce(cluster: Cluster, topic: str, *values: str, bootstrap: str | None = None) -> None:
    servers = bootstrap or cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def consume(bootstrap: str, topic: str, count: int) -> set[str]:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "log_level": 0})
    consumer.subscribe([topic])
    found: set[str] = set()
    deadline = time.monotonic() + 60
    try:
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.add((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


class TestOneAfterTheOther:
    def test_cluster_lists_its_nodes(self, whole: Cluster) -> None:
        assert [node.id for node in whole.nodes] == [1, 2, 3]
        assert len({node.port for node in whole.nodes} | {node.controller_port for node in whole.nodes}) == 6
        assert len(whole.bootstrap_servers.split(",")) == len(whole.bootstrap_controllers.split(",")) == 3
        assert all(f"127.0.0.1:{node.port}" in whole.bootstrap_servers for node in whole.brokers)
        assert "is ready" in whole.node(2).log_file.read_text()
        with pytest.raises(ValueError, match="no node 4"):
            whole.node(4)
        with pytest.raises(RuntimeError, match="has 3 nodes"):
            assert whole.port

    @pytest.mark.parametrize("victim", [1, 2, 3])
    def test_kill_and_restart(self, whole: Cluster, victim: int) -> None:
        topic = f"killed-{victim}"
        create(whole, topic)
        ports = [node.port for node in whole.nodes]
        whole.kill(victim)
        assert not whole.node(victim).running and not whole.running
        assert whole.node(victim).exit_code == -signal.SIGKILL
        produce(whole, topic, "a", "b", "c")
        whole.restart(victim)
        whole.wait_for_brokers()
        assert [node.port for node in whole.nodes] == ports
        eventually(lambda: in_sync(whole, topic) == [{1, 2, 3}] * 3, what="all are in sync")
        assert consume(f"127.0.0.1:{whole.node(victim).port}", topic, 3) == {"a", "b", "c"}

    def test_paused_node_is_fenced_and_rejoins(self, whole: Cluster) -> None:
        create(whole, "paused")
        whole.pause(2)
        assert whole.node(2).running and whole.node(2).paused
        eventually(lambda: in_sync(whole, "paused") == [{1, 3}] * 3, what="2 is given up")
        produce(whole, "paused", "a", "b")
        whole.resume(2)
        eventually(lambda: in_sync(whole, "paused") == [{1, 2, 3}] * 3, what="2 is back")

    @pytest.mark.parametrize("one_way", [False, True])
    def test_partitioned_node_is_fenced_and_rejoins_after_healing(
        self, whole: Cluster, one_way: bool
    ) -> None:
        topic = f"cut-{one_way}".lower()
        create(whole, topic)
        whole.partition(3, [1, 2], one_way=one_way)
        # Node 3 still takes itself for a leader, and whoever asks it first believes that.
        first = f"127.0.0.1:{whole.node(1).port}"
        eventually(lambda: in_sync_at(first, topic) == [{1, 2}] * 3, what="3 is given up")
        produce(whole, topic, "a", "b", bootstrap=first)
        whole.heal()
        eventually(lambda: in_sync(whole, topic) == [{1, 2, 3}] * 3, what="3 is back")

    def test_node_started_while_partitioned_is_ready_after_healing(self, whole: Cluster) -> None:
        whole.kill(1)
        whole.partition(1, [2, 3])
        starts = whole.node(1).log_file.read_text().count("is ready")
        whole.restart(1, wait=False)
        time.sleep(1)
        assert whole.node(1).log_file.read_text().count("is ready") == starts
        whole.heal()
        whole.node(1).wait_ready()
        whole.wait_for_brokers()

    def test_from_within_a_loop(self, whole: Cluster) -> None:
        async def restart() -> None:
            whole.kill(2)
            whole.restart(2)
            whole.wait_for_brokers()

        asyncio.run(restart())

    def test_kill_all_and_start_again(self, whole: Cluster) -> None:
        create(whole, "all")
        produce(whole, "all", "a")
        pids = [node.pid for node in whole.nodes]
        whole.kill()
        assert not any(node.running for node in whole.nodes)
        whole.restart()
        assert not {node.pid for node in whole.nodes} & set(pids)
        assert consume(whole.bootstrap_servers, "all", 1) == {"a"}


def in_sync_at(bootstrap: str, topic: str) -> list[set[int]]:
    """As one of the nodes has it, which may be behind; nothing if none of them answers."""
    asked = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        found = asked.list_topics(topic, timeout=10).topics[topic]
    except KafkaException:
        return []
    return [set(partition.isrs) for partition in found.partitions.values()]


class TestShapes:
    def test_separate_controllers_and_settings_of_single_nodes(self) -> None:
        racks = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}}
        with Cluster(brokers=2, controllers=1, node_config=racks) as cluster:
            assert [node.is_controller for node in cluster.nodes] == [False, False, True]
            assert len(cluster.bootstrap_servers.split(",")) == 2
            with pytest.raises(RuntimeError, match="no listener PLAINTEXT"):
                assert cluster.node(3).port
            settings = load_properties(cluster.node(2).data_dir / "server.properties")
            assert (settings["process.roles"], settings["broker.rack"]) == ("broker", "b")
            produce(cluster, "made-by-itself", "a")

    def test_data_dir_is_reused_only_by_the_same_cluster(self, tmp_path: Path) -> None:
        with Cluster(brokers=2, data_dir=tmp_path / "kept") as first:
            produce(first, "kept", "a")
            ports = [node.port for node in first.nodes]
        assert [node.exit_code for node in first.nodes] == [0, 0], "shut down in order"
        with Cluster(brokers=2, data_dir=tmp_path / "kept") as second:
            assert [node.port for node in second.nodes] == ports
            assert consume(second.bootstrap_servers, "kept", 1) == {"a"}
        with pytest.raises(NodeFailed, match=r"another cluster, with the nodes 1 \(broker,controller\), 2"):
            Cluster(brokers=3, data_dir=tmp_path / "kept").start()

    def test_failed_start_of_one_node_ends_all(self) -> None:
        cluster = Cluster(brokers=3, node_config={2: {"num.partitions": 0}})
        with pytest.raises(NodeFailed, match=r"num\.partitions"), cluster:
            pass
        assert not any(node.running for node in cluster.nodes)

    def test_closed_cluster_leaves_nothing(self) -> None:
        cluster = Cluster(brokers=3).start()
        folder, pids = cluster.data_dir, [node.pid for node in cluster.nodes]
        cluster.pause(3)
        cluster.close()
        assert not folder.exists()
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
