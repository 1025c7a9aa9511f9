"""A data source of Spark as a source of topics: new rows of a stream, and everything in batch mode."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.pipelines.connect.connectors.spark.source import SparkSourceConnector
from moldau.testing.connect import SourceRun
from tests.harness.waiting import eventually

#: A session starts within seconds, on a busy machine within minutes.
START_S = 150.0


def write(folder: Path, name: str, start: int, end: int) -> None:
    folder.mkdir(exist_ok=True)
    rows = (json.dumps({"id": number, "name": f"n{number}"}) for number in range(start, end))
    (folder / name).write_text("\n".join(rows))


@pytest.mark.timeout(400)
def test_rows_of_a_stream_arrive_once_and_those_of_a_batch_again(spark: SparkSession, tmp_path: Path) -> None:
    config = {
        "format": "json",
        "option.path": str(tmp_path / "in"),
        "topic": "rows",
        "staging.dir": str(tmp_path / "staging"),
        "read.schema": "id BIGINT, name STRING",
        "read.columns": "id; upper(name) AS name",
        "interval.ms": "200",
    }
    write(tmp_path / "in", "a.json", 0, 5)
    with SourceRun(SparkSourceConnector(), config) as run:
        records = run.read(5, START_S)
        assert sorted(record.value.values for record in records) == [[n, f"N{n}"] for n in range(5)]
        assert {record.topic for record in records} == {"rows"}
        run.restart()
        write(tmp_path / "in", "b.json", 5, 8)
        assert sorted(record.value.get("id") for record in run.read(3, START_S)) == [5, 6, 7]
        assert run.connector_context.error is None
    batch = {**config, "read.mode": "batch", "staging.dir": str(tmp_path / "other"), "interval.ms": "500"}
    with SourceRun(SparkSourceConnector(), batch) as run:
        ids = [record.value.get("id") for record in run.read(16, START_S)]
        assert sorted(ids) == sorted([*range(8), *range(8)])
    with SourceRun(SparkSourceConnector(), {**batch, "staging.dir": str(tmp_path / "slow")}) as run:
        # No record is read: the query waits instead of filling the disk.
        staged = tmp_path / "slow" / "rows"
        eventually(lambda: len(list(staged.iterdir())) == 4, timeout=START_S)
        before = sorted(staged.iterdir())
        time.sleep(1.5)
        assert sorted(staged.iterdir()) == before
        assert len(run.read(32, START_S)) == 32
        assert len(run.read(8, START_S)) == 8
    unknown = {**config, "format": "no-such-format", "staging.dir": str(tmp_path / "third")}
    with SourceRun(SparkSourceConnector(), unknown) as run:
        context = run.connector_context
        eventually(lambda: context.error is not None, timeout=START_S)
        assert "no-such-format" in str(context.error)
