"""Tiered storage in a cluster: new replicas, a killed leader, reads from followers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.testing import Cluster
from tests.harness.nodes.leaders import leaders_of, replicas_of, wait_until_in_sync
from tests.harness.tiered.worlds import (
    consume,
    local,
    payload,
    produce,
    stored,
    tiered_config,
    tiered_topic,
)
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    with Cluster(brokers=3, config=tiered_config(folder, brokers=3)) as cluster:
        yield cluster


def all_tiered(cluster: Cluster, topic: str, nodes: list[int]) -> bool:
    return all(len(local(cluster.node(node).data_dir, topic)) == 1 for node in nodes)


def test_a_new_replica_starts_after_the_remote_tier(
    cluster: Cluster, folder: Path, topic: str, tmp_path: Path
) -> None:
    tiered_topic(cluster.bootstrap_servers, topic, replicas=2)
    produce(cluster.bootstrap_servers, topic, range(55), **{"enable.idempotence": True})
    _, nodes = replicas_of(cluster, topic)[0]
    eventually(lambda: all_tiered(cluster, topic, nodes))
    (missing,) = {1, 2, 3} - set(nodes)
    plan = tmp_path / "plan.json"
    moved = {"topic": topic, "partition": 0, "replicas": [missing, nodes[0]]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    run = run_tool(
        "kafka-reassign-partitions",
        *("--bootstrap-server", cluster.bootstrap_servers),
        *("--reassignment-json-file", str(plan), "--execute"),
    )
    assert run.code == 0, run.err
    eventually(lambda: set(replicas_of(cluster, topic)[0][1]) == {missing, nodes[0]})
    wait_until_in_sync(cluster, topic)
    # Nothing that is in the remote tier was copied.
    assert local(cluster.node(missing).data_dir, topic)[0] > 0
    run = run_tool(
        "kafka-leader-election",
        *("--bootstrap-server", cluster.bootstrap_servers, "--election-type", "preferred"),
        *("--topic", topic, "--partition", "0"),
    )
    assert run.code == 0, run.err
    eventually(lambda: leaders_of(cluster, topic)[0] == missing)
    assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))
    produce(cluster.bootstrap_servers, topic, range(55, 80))
    eventually(lambda: stored(folder, topic)[-1] >= 60)
    assert consume(cluster.bootstrap_servers, topic, 0, 80) == list(range(80))


def test_the_next_leader_continues_after_a_kill(cluster: Cluster, folder: Path, topic: str) -> None:
    tiered_topic(cluster.bootstrap_servers, topic, replicas=3, min_insync_replicas="2")
    produce(cluster.bootstrap_servers, topic, range(40))
    eventually(lambda: stored(folder, topic))
    victim = leaders_of(cluster, topic)[0]
    cluster.kill(victim)
    try:
        eventually(lambda: leaders_of(cluster, topic)[0] not in (victim, -1))
        produce(cluster.bootstrap_servers, topic, range(40, 80))
        others = [node for node in (1, 2, 3) if node != victim]
        eventually(lambda: all_tiered(cluster, topic, others))
        assert consume(cluster.bootstrap_servers, topic, 0, 80) == list(range(80))
    finally:
        cluster.restart(victim)
    wait_until_in_sync(cluster, topic)
    assert consume(cluster.bootstrap_servers, topic, 0, 80) == list(range(80))


def test_an_unclean_leader_ignores_remote_records_that_it_never_had(
    cluster: Cluster, folder: Path, topic: str
) -> None:
    tiered_topic(
        cluster.bootstrap_servers,
        topic,
        replicas=2,
        min_insync_replicas="1",
        unclean_leader_election_enable="true",
    )
    leader, nodes = replicas_of(cluster, topic)[0]
    (behind,) = set(nodes) - {leader}
    produce(cluster.bootstrap_servers, topic, range(40))
    wait_until_in_sync(cluster, topic)
    eventually(lambda: all_tiered(cluster, topic, nodes))
    cluster.kill(behind)
    try:
        produce(cluster.bootstrap_servers, topic, range(40, 80))
        eventually(lambda: stored(folder, topic)[-1] >= 60)
        cluster.kill(leader)
    finally:
        cluster.restart(behind)
    try:
        eventually(lambda: leaders_of(cluster, topic)[0] == behind)
        produce(cluster.bootstrap_servers, topic, range(200, 240))
        expected = [*range(40), *range(200, 240)]
        assert consume(cluster.bootstrap_servers, topic, 0, 80) == expected
        eventually(lambda: all_tiered(cluster, topic, [behind]))
        assert local(cluster.node(behind).data_dir, topic)[0] >= 60
        # The remote tier has segments of both leaders for the same offsets.
        assert consume(cluster.bootstrap_servers, topic, 0, 80) == expected
        assert consume(cluster.bootstrap_servers, topic, 38, 10)[:10] == expected[38:48]
    finally:
        cluster.restart(leader)
    wait_until_in_sync(cluster, topic)
    assert consume(cluster.bootstrap_servers, topic, 0, 80) == expected


def test_aborted_transactions_of_the_remote_tier_are_not_shown(
    cluster: Cluster, folder: Path, topic: str
) -> None:
    tiered_topic(cluster.bootstrap_servers, topic, replicas=3)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": topic,
            "linger.ms": 0,
            "batch.num.messages": 1,
        }
    )
    producer.init_transactions(30)
    kept = []
    for number in range(12):
        producer.begin_transaction()
        for record in range(number * 5, number * 5 + 5):
            producer.produce(topic, payload(record), partition=0)
        if number % 3 == 1:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            kept += range(number * 5, number * 5 + 5)
    _, nodes = replicas_of(cluster, topic)[0]
    eventually(lambda: all_tiered(cluster, topic, nodes))
    assert stored(folder, topic, "txnindex")
    committed = consume(
        cluster.bootstrap_servers, topic, 0, len(kept), **{"isolation.level": "read_committed"}
    )
    assert committed == kept
    everything = consume(cluster.bootstrap_servers, topic, 0, 60, **{"isolation.level": "read_uncommitted"})
    assert everything == list(range(60))
