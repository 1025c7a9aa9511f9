"""A pipeline that is stopped in the middle of a batch replays the batch and writes it once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.pipelines.runtime.hosts import host_of, run_to_the_end
from tests.pipelines.runtime.topics import committed, create, ids, orders, produce

pytestmark = pytest.mark.timeout(400)

PIPELINE = """\
name: slow
source: {topic: stop-in, format: json, schema: "id LONG, amount DOUBLE"}
steps:
  - python: slow_steps.py:held
sink: {topic: stop-out, format: json, key: id}
trigger: available_now
"""
#: Rows wait, in the workers, until a file is there.
STEPS = """\
import time
from pathlib import Path
from pyspark.sql import functions as F

FOLDER = Path(__file__).parent


def held(frame):
    begun, go_on = str(FOLDER / "begun"), str(FOLDER / "go on")

    def wait(value):
        Path(begun).touch()
        while not Path(go_on).exists():
            time.sleep(0.05)
        return value

    return frame.withColumn("id", F.udf(wait, "long")("id"))
"""


def test_stop_in_the_middle_of_a_batch(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 2, "stop-in", "stop-out")
    produce(servers, "stop-in", orders(0, 50))
    (tmp_path / "slow.yaml").write_text(PIPELINE)
    (tmp_path / "slow_steps.py").write_text(STEPS)
    host = host_of(spark, servers, tmp_path, [tmp_path / "slow.yaml"])

    def in_a_batch() -> bool:
        host.tick(time.monotonic())
        return (tmp_path / "begun").exists()

    eventually(in_a_batch, timeout=120, every=0.1)
    host.stop()
    assert [each.status.state for each in host.hosted] == ["stopped"]
    assert committed(servers, "stop-out") == []
    (tmp_path / "go on").touch()
    again = run_to_the_end(host_of(spark, servers, tmp_path, [tmp_path / "slow.yaml"]))
    assert (again["slow"].state, again["slow"].error) == ("finished", None)
    assert ids(value for _, value, _ in committed(servers, "stop-out")) == list(range(50))
