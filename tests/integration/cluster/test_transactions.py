"""Transactions over partitions of three brokers are atomic, whichever node is killed."""

from __future__ import annotations

import random
import time
import uuid

from confluent_kafka import KafkaException, Producer

from moldau.base.java_hash import partition_for_name
from moldau.testing import Cluster
from tests.harness.clients.exactly_once_workers import Workers
from tests.harness.clients.feed import PARTITIONS, QUIET, create
from tests.harness.nodes.leaders import (
    TRANSACTION,
    coordinator_of,
    leaders_of,
    replicas_of,
    wait_until_in_sync,
)
from tests.harness.waiting import eventually
from tests.integration.transactions.test_transactions import read

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # A paused broker is fenced soon.
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "2000",
    # With two replicas on three brokers, every partition has a broker without a replica.
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "12",
}


def new_producer(cluster: Cluster, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 30_000,
            **QUIET,
        }
    )
    producer.init_transactions(60)
    return producer


def send_everywhere(producer: Producer, topic: str, number: int) -> None:
    for partition in range(PARTITIONS):
        producer.produce(topic, f"{number}:{partition}", partition=partition)


def commit(producer: Producer) -> None:
    """Commit, and retry while librdkafka reports a retriable error."""
    deadline = time.monotonic() + 60
    while True:
        try:
            producer.commit_transaction(60)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def test_transactions_over_all_leaders_are_atomic_when_their_coordinator_is_killed(
    cluster: Cluster, topic: str
) -> None:
    create(cluster, topic)
    transactional_id = f"id-of-{topic}"
    producer = new_producer(cluster, transactional_id)
    assert len(set(leaders_of(cluster, topic).values())) == 3
    wanted = set()
    for number in range(24):
        producer.begin_transaction()
        send_everywhere(producer, topic, number)
        if number in (5, 15):
            assert producer.flush(60) == 0
            cluster.kill(coordinator_of(cluster, transactional_id, TRANSACTION))
        elif number == 10:
            cluster.start()
            wait_until_in_sync(cluster, topic, "__transaction_state")
        if number % 3:
            commit(producer)
            wanted |= {f"{number}:{partition}" for partition in range(PARTITIONS)}
        else:
            producer.abort_transaction(60)
    eventually(lambda: len(read(cluster.bootstrap_servers, topic, PARTITIONS)) >= len(wanted), every=0.5)
    found = read(cluster.bootstrap_servers, topic, PARTITIONS)
    assert sorted(found) == sorted(wanted)


def test_a_prepared_commit_completes_after_its_coordinator_dies(cluster: Cluster, topic: str) -> None:
    """The partition leader is paused, so that the markers wait; then the coordinator is killed."""
    create(cluster, topic, replicas=1)
    new_producer(cluster, "first").flush()
    silent = leaders_of(cluster, topic)[0]
    transactional_id, coordinator = id_without(cluster, silent)
    producer = new_producer(cluster, transactional_id)
    producer.begin_transaction()
    producer.produce(topic, "decided", partition=0)
    assert producer.flush(60) == 0
    cluster.pause(silent)
    try:
        commit(producer)
        cluster.kill(coordinator)
    finally:
        cluster.resume(silent)
    eventually(
        lambda: read(cluster.bootstrap_servers, topic, 1) == ["decided"],
        every=0.5,
        what="markers",
    )
    assert coordinator_of(cluster, transactional_id, TRANSACTION) not in (coordinator, silent)


def id_without(cluster: Cluster, broker: int) -> tuple[str, int]:
    """Return a transactional id whose partition has no replica on a broker, and that partition's leader."""
    replicas = replicas_of(cluster, "__transaction_state")
    while True:
        transactional_id = f"id-{uuid.uuid4().hex[:8]}"
        leader, holders = replicas[partition_for_name(transactional_id, len(replicas))]
        if broker not in holders:
            return transactional_id, leader


def test_a_paused_coordinator_is_fenced_when_it_resumes(cluster: Cluster, topic: str) -> None:
    create(cluster, topic)
    transactional_id = f"id-of-{topic}"
    producer = new_producer(cluster, transactional_id)
    producer.begin_transaction()
    send_everywhere(producer, topic, 0)
    assert producer.flush(60) == 0
    zombie = coordinator_of(cluster, transactional_id, TRANSACTION)
    cluster.pause(zombie)
    try:
        eventually(lambda: coordinator_of(cluster, transactional_id, TRANSACTION) != zombie, every=0.2)
        commit(producer)
        producer.begin_transaction()
        send_everywhere(producer, topic, 1)
        assert producer.flush(60) == 0
    finally:
        cluster.resume(zombie)
    cluster.wait_for_brokers()
    producer.abort_transaction(60)
    wanted = {f"0:{partition}" for partition in range(PARTITIONS)}
    eventually(lambda: set(read(cluster.bootstrap_servers, topic, PARTITIONS)) == wanted, every=0.5)


def test_read_process_write_is_exactly_once_while_brokers_and_workers_are_killed(
    cluster: Cluster, topic: str
) -> None:
    numbers, steps = 1200, 6
    source, target = f"{topic}-in", f"{topic}-out"
    create(cluster, source)
    create(cluster, target)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUIET})
    chance = random.Random(11)
    workers = Workers(2, cluster.bootstrap_servers, source, target, f"group-of-{topic}")
    try:
        for step in range(steps):
            for number in range(step * numbers // steps, (step + 1) * numbers // steps):
                producer.produce(source, str(number), partition=number % PARTITIONS)
            assert producer.flush(60) == 0
            # The moment of the kill is random on purpose.
            time.sleep(chance.uniform(0.3, 1.5))
            if step % 2:
                workers.kill(chance.randrange(2))
            else:
                victim = chance.choice(cluster.brokers)
                victim.kill()
                time.sleep(chance.uniform(0.1, 1.0))
                cluster.start()
        wanted = sorted(f"{number}:{number * number}" for number in range(numbers))

        def found() -> list[str]:
            return read(cluster.bootstrap_servers, target, PARTITIONS)

        eventually(lambda: len(found()) >= numbers, timeout=120, every=1, what="all squares are committed")
        assert sorted(found()) == wanted
    finally:
        workers.stop()
