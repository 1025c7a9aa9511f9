"""Pipelines side by side in one session: one fails and is started again, the other notices nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.host import Host, Hosted
from moldau.pipelines.runtime.loading import load
from moldau.pipelines.runtime.python_pipeline import Context
from moldau.pipelines.runtime.restarts import Policy
from moldau.pipelines.runtime.state import StateFolder, Status
from moldau.testing import Cluster
from tests.pipelines.runtime.topics import committed, create, orders, produce

STOPPING = """\
name: stopping
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: small, expect: id < 10, on_fail: fail}
sink: {topic: host-none, format: json}
---
name: unreadable
source: {topic: host-in, format: csv, schema: "id INT"}
sink: {topic: host-none, format: json}
---
name: counting
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: small, expect: id < 10, on_fail: warn}
steps:
  - sql: SELECT id % 2 AS odd, count(*) AS number FROM input GROUP BY 1
sink: {topic: host-out, format: json, key: odd, output_mode: update}
trigger: available_now
"""
FAILING = """\
from pathlib import Path
from moldau.pipelines.runtime import pipeline

TRIES = Path(__file__).with_name("tries")


@pipeline("sometimes")
def sometimes(spark):
    TRIES.write_text(TRIES.read_text() + "x" if TRIES.exists() else "x")
    if len(TRIES.read_text()) < 3:
        raise OSError("the cable is loose")
    return spark.readStream.format("rate").load().writeStream.format("noop").trigger(availableNow=True)


@pipeline("never")
def never(spark):
    return 42
"""


def test_each_as_if_it_were_alone(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "host-in", "host-out", "host-none")
    produce(servers, "host-in", orders(0, 30))
    (tmp_path / "p.yaml").write_text(STOPPING)
    (tmp_path / "failing.py").write_text(FAILING)
    loaded = load([tmp_path / "p.yaml", tmp_path / "failing.py"])
    host = Host(spark, StateFolder(tmp_path / "state"), lambda: 0)
    policy = Policy(first_pause_s=0.1, tries=5)
    for name, runnable in loaded.pipelines.items():
        context = Context(servers, str(tmp_path / "state" / name / "checkpoint"))
        host.add(Hosted(runnable, Status(name), context, policy))
    deadline = time.monotonic() + 100
    while not host.has_ended and time.monotonic() < deadline:
        host.tick(time.monotonic())
        time.sleep(0.1)
    host.stop()
    found = {each.status.name: each.status for each in host.hosted}
    states = {name: status.state for name, status in found.items()}
    assert states == {
        "stopping": "failed",
        "unreadable": "failed",
        "counting": "finished",
        "sometimes": "finished",
        "never": "failed",
    }
    assert found["stopping"].error is not None
    assert found["stopping"].error.startswith("the check 'small' failed: expected id < 10")
    assert "the record of host-in-0 at offset 0 is not the delimited columns" in str(
        found["unreadable"].error
    )
    assert found["sometimes"].restarts == 2
    assert "gives int: it should give a frame" in str(found["never"].error)
    assert found["counting"].checks == {"unreadable": 0, "check small": 20}
    assert {value for _, value, _ in committed(servers, "host-out")} == {
        b'{"odd":0,"number":15}',
        b'{"odd":1,"number":15}',
    }
    assert committed(servers, "host-none") == []


def test_files_that_are_no_pipelines(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "a.txt").write_text("")
    for name, message in (
        ("empty.py", "there is no pipeline in it: a function with @pipeline"),
        ("a.txt", "files that end with .yaml, .yml, .py, .sql"),
        ("missing.yaml", "there is no such file"),
    ):
        with pytest.raises(BadDefinition, match=message):
            load([tmp_path / name])
