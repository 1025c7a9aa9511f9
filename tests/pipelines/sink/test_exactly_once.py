"""Exactly-once delivery from topic to topic while drivers and workers are killed at random points.

A driver process copies a topic in three ways. It is killed repeatedly with its JVM, or loses a worker in the
middle of a task, and restarts with another number of cores and tasks, with Spark's own worker start or with
the fork server. At the end each target has every record once, in the order of the source where the plan keeps
it.

`MOLDAU_KILLS` is the number of drivers to kill (default 2), `MOLDAU_KILL_SEED` the seed.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.sink.copying import PLANS, Settings
from tests.pipelines.sink.drivers import Driver
from tests.pipelines.sink.records import committed, wait_for_more
from tests.pipelines.source.topics import Topics

KILLS = int(os.environ.get("MOLDAU_KILLS", "2"))
SEED = int(os.environ.get("MOLDAU_KILL_SEED", "11"))
PARTITIONS, KEYS = 3, 17


@pytest.mark.timeout(600)
def test_killed_drivers_neither_lose_nor_duplicate_records(topics: Topics, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    records = 6_000 * (KILLS + 1)
    source = topics.create(PARTITIONS)
    target = f"copied-{source}"
    targets = [topics.create(PARTITIONS, name=f"{target}-{plan}") for plan in PLANS]
    topics.produce(
        source,
        [
            {"key": f"k{n % KEYS}", "value": str(n), "partition": n % KEYS % PARTITIONS}
            for n in range(records)
        ],
    )

    def settings(**given: Any) -> Settings:
        return Settings(
            bootstrap_servers=topics.bootstrap_servers,
            source=source,
            target=target,
            folder=str(tmp_path),
            cores=chance.choice((1, 2, 3)),
            min_partitions=chance.choice((1, 3, 4, 7)),
            shuffle_partitions=chance.choice((2, 3, 5)),
            **given,
        )

    for number in range(KILLS):
        with Driver(settings(quick_start=number % 2 == 1), tmp_path) as driver:
            driver.wait_started()
            wait_for_more(topics, *targets)
            time.sleep(chance.uniform(0, 1))
            if driver.kill_worker(chance):
                wait_for_more(topics, *targets)
            time.sleep(chance.uniform(0, 1))
            driver.kill()
    with Driver(settings(to_end=True, per_trigger=records), tmp_path) as driver:
        driver.wait_ended()
    check_copies(topics, target, records)


def check_copies(topics: Topics, target: str, records: int) -> None:
    for plan in PLANS:
        found = committed(topics, f"{target}-{plan}")
        counts = Counter(int(message.value()) for message in found)
        assert sorted(counts) == list(range(records)), f"{plan} lost {set(range(records)) - set(counts)}"
        assert sum(counts.values()) == records, f"{plan} has twice {[n for n, c in counts.items() if c > 1]}"
        if plan == "plain":
            check_order(found)


def check_order(found: list[Any]) -> None:
    keys = defaultdict(list)
    for message in found:
        number = int(message.value())
        assert message.partition() == number % KEYS % PARTITIONS
        keys[message.key()].append(number)
    for numbers in keys.values():
        assert numbers == sorted(numbers)
