"""Exactly-once processing under kill -9: each number is squared once, in order."""

from __future__ import annotations

import random
import time
import uuid

from confluent_kafka import Producer

from tests.harness.clients.exactly_once_workers import Workers
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.integration.conftest import StartNode
from tests.integration.transactions.test_transactions import read

PARTITIONS = 3
WORKERS = 2
NUMBERS = 1500
KILLS = 8


def test_consume_transform_produce_is_exactly_once_under_kill_9(start_node: StartNode, topic: str) -> None:
    node = start_node(
        config={
            "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
    )
    bootstrap, source, target = node.bootstrap_servers, f"{topic}-in", f"{topic}-out"
    create_and_wait(bootstrap, source, PARTITIONS)
    create_and_wait(bootstrap, target, PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
    chance = random.Random(7)
    workers = Workers(WORKERS, bootstrap, source, target, f"group-{uuid.uuid4().hex[:8]}")
    try:
        for step in range(KILLS):
            for number in range(step * NUMBERS // KILLS, (step + 1) * NUMBERS // KILLS):
                producer.produce(source, str(number), partition=number % PARTITIONS)
            producer.flush(60)
            # When the blow falls is what this is about.
            time.sleep(chance.uniform(0.3, 1.5))
            if step % 3 == 2:
                node.kill()
                node.restart()
            else:
                workers.kill(chance.randrange(WORKERS))
        wanted = sorted(f"{number}:{number * number}" for number in range(NUMBERS))
        eventually(lambda: len(read(bootstrap, target, PARTITIONS)) >= NUMBERS, every=1, what="all of it")
        found = read(bootstrap, target, PARTITIONS)
        assert sorted(found) == wanted
    finally:
        workers.stop()
