"""Exactly once on Spark's standalone cluster while executors, and once the driver, are killed.

It needs five Java processes on one machine, too much for every test run. `MOLDAU_KILLS`
is the number of executors to kill.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from moldau.testing import Cluster
from moldau.testing.spark_cluster import SparkCluster
from tests.pipelines.sink.copying import PLANS, Settings
from tests.pipelines.sink.drivers import Driver, descendants
from tests.pipelines.sink.records import wait_for_more
from tests.pipelines.sink.test_exactly_once import KEYS, PARTITIONS, check_copies
from tests.pipelines.source.topics import Topics

pytestmark = pytest.mark.interop

KILLS = int(os.environ.get("MOLDAU_KILLS", "4"))
SEED = int(os.environ.get("MOLDAU_KILL_SEED", "5"))
_EXECUTOR = b"CoarseGrainedExecutorBackend"


def kill_executor(spark: SparkCluster, chance: random.Random) -> bool:
    """Kill one of the executors; the workers start a new one."""
    found = [pid for worker in spark.process_ids for pid in descendants(worker) if _is_executor(pid)]
    with contextlib.suppress(ProcessLookupError, IndexError):
        os.kill(chance.choice(found), signal.SIGKILL)
        return True
    return False


def _is_executor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.timeout(600)
def test_killed_executors_cause_no_loss_and_no_duplicates(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    records = 12_000
    with Cluster() as broker, SparkCluster(workers=2) as spark:
        topics = Topics(broker.bootstrap_servers)
        source = topics.create(PARTITIONS)
        targets = [topics.create(PARTITIONS, name=f"copied-{plan}") for plan in PLANS]
        topics.produce(
            source,
            [
                {"key": f"k{n % KEYS}", "value": str(n), "partition": n % KEYS % PARTITIONS}
                for n in range(records)
            ],
        )
        settings = {
            "bootstrap_servers": topics.bootstrap_servers,
            "source": source,
            "target": "copied",
            "folder": str(tmp_path / "checkpoints"),
            "master": spark.url,
        }
        with Driver(Settings(**settings, per_trigger=200), tmp_path) as driver:
            driver.wait_started(120)
            for _ in range(KILLS):
                wait_for_more(topics, *targets)
                time.sleep(chance.uniform(0, 1))
                assert kill_executor(spark, chance)
            wait_for_more(topics, *targets)
            driver.kill()
        last = Settings(**settings, shuffle_partitions=5, min_partitions=4, per_trigger=records, to_end=True)
        with Driver(last, tmp_path) as driver:
            driver.wait_ended(200)
        check_copies(topics, "copied", records)
        topics.close()
