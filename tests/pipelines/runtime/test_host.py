"""Several pipelines in one session: one fails and restarts, the others are not affected."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.base.backoff import Backoff
from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.pipeline_files import load
from moldau.pipelines.runtime.restarts import Policy
from moldau.testing import Cluster
from tests.pipelines.runtime.hosts import host_of, run_to_the_end
from tests.pipelines.runtime.topics import committed, create, orders, produce

pytestmark = pytest.mark.timeout(400)

STOPPING = """\
name: stopping
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: small, expect: id < 10, on_fail: fail}
sink: {topic: host-none, format: json}
---
name: too-many
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: half, expect: id < 15, on_fail: warn, at_most: 50%}
  - {name: few, expect: id < 28, on_fail: drop, at_most: 2}
  - {name: most, expect: id >= 5, on_fail: dead_letter, at_most: 4}
sink: {topic: host-checked, format: json}
dead_letter: host-dead
---
name: no-condition
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: number, expect: id + 1}
sink: {topic: host-none, format: json}
---
name: no-column
source: {topic: host-in, format: json, schema: "id LONG, amount DOUBLE"}
checks:
  - {name: unknown, expect: price > 1, on_fail: warn}
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
    if len(TRIES.read_text()) <= 10:
        raise OSError("the cable is loose")
    return spark.readStream.format("rate").load().writeStream.format("noop").trigger(availableNow=True)


@pipeline("several")
def several(spark, context):
    frame = spark.readStream.format("rate").load()
    return [frame.writeStream.format("noop").trigger(availableNow=True) for _ in range(2)]


@pipeline("never")
def never(spark):
    return 42
"""


def test_pipelines_of_one_driver_are_independent(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "host-in", "host-out", "host-none", "host-checked", "host-dead")
    produce(servers, "host-in", orders(0, 30))
    (tmp_path / "p.yaml").write_text(STOPPING)
    (tmp_path / "failing.py").write_text(FAILING)
    files = [tmp_path / "p.yaml", tmp_path / "failing.py"]
    host = host_of(spark, servers, tmp_path, files, Policy(Backoff(0.01, 0.1), tries=12))
    found = run_to_the_end(host)
    states = {name: status.state for name, status in found.items()}
    assert states == {
        "stopping": "failed",
        "too-many": "failed",
        "no-condition": "failed",
        "no-column": "failed",
        "unreadable": "failed",
        "counting": "finished",
        "sometimes": "finished",
        "several": "finished",
        "never": "failed",
    }
    assert found["stopping"].error is not None
    assert found["stopping"].error.startswith("the check 'small' failed: expected id < 10")
    assert found["too-many"].error == (
        "in batch 0 5 of 30 rows failed the check 'most', which allows 4 rows: expected id >= 5"
    )
    assert found["too-many"].checks == {"unreadable": 0, "check half": 15, "check few": 2, "check most": 5}
    assert found["too-many"].dead_letters == len(committed(servers, "host-dead")) == 5
    assert len(committed(servers, "host-checked")) == 30 - 2 - 5
    assert "the check 'number' expects 'id + 1', which is bigint; it" in str(found["no-condition"].error)
    assert "the condition of the check 'unknown' is invalid: [UNRESOLVED_COLUMN" in str(
        found["no-column"].error
    )
    assert (
        "the record of host-in-0 at offset 0 cannot be decoded: invalid delimited text for the schema"
        in str(found["unreadable"].error)
    )
    assert found["sometimes"].restarts == 10
    assert {query["query"] for query in found["several"].queries} == {"several", "several-1"}
    assert "returns int; it must return a data frame" in str(found["never"].error)
    assert found["counting"].checks == {"unreadable": 0, "check small": 20}
    assert {value for _, value, _ in committed(servers, "host-out")} == {
        b'{"odd":0,"number":15}',
        b'{"odd":1,"number":15}',
    }
    assert committed(servers, "host-none") == []


def test_files_without_pipelines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "a.txt").write_text("")
    for name, message in (
        ("empty.py", "no pipeline found; define a function with @pipeline"),
        ("a.txt", "must end with .yaml, .yml, .py, .sql"),
        ("missing.yaml", "no such file"),
    ):
        with pytest.raises(BadDefinition, match=message):
            load([tmp_path / name])
