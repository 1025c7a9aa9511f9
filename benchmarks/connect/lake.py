"""Tables from topics: our Iceberg and Delta sinks, beside Spark's own Parquet writer on the same topic.

Rows per second are those between the first and the last commit of a filled topic. Freshness is the time from
producing a record until it is in the table, at a steady rate and with a commit every five seconds; the files
are those that this minute leaves.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.connect.loads import Inputs, row
from benchmarks.connect.workers import Running
from benchmarks.rounds import Figures
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.tables import DeltaTables, IcebergLake

SPARK_RATE = "Spark's Parquet writer: rows/s"
_INTERVAL_MS, _MOST_ROWS = "5000", "50000"
_RATE = 200
_SECONDS, _QUICK_SECONDS = 60, 15
_LOAD_SECONDS = 300.0
_SPARK_SECONDS = 300


def measure(running: Running, inputs: Inputs) -> Figures:
    figures: Figures = {}
    for lake_type in (IcebergLake, DeltaTables):
        folder = inputs.folder / lake_type.kind
        folder.mkdir()
        figures |= _throughput(running, inputs, lake_type(folder))
        folder = inputs.folder / f"{lake_type.kind}-fresh"
        folder.mkdir()
        figures |= _freshness(running, inputs, lake_type(folder))
    return figures


def _config(lake: IcebergLake | DeltaTables, topic: str) -> dict[str, str]:
    config = lake.config()
    config |= {
        "name": f"lake-{topic}-{lake.kind}",
        "topics": topic,
        f"{lake.kind}.control.commit.interval-ms": _INTERVAL_MS,
        f"{lake.kind}.control.commit.max-rows": _MOST_ROWS,
    }
    return config


def _throughput(running: Running, inputs: Inputs, lake: IcebergLake | DeltaTables) -> Figures:
    config = _config(lake, "rows")
    with running.connector(config["name"], config):
        commits = _commits(running, lake, inputs.rows)
    (first_at, first), (last_at, last) = commits[0], commits[-1]
    return {f"{lake.kind}: rows/s": (last - first) / max(last_at - first_at, 0.001)}


def _commits(running: Running, lake: IcebergLake | DeltaTables, count: int) -> list[tuple[float, int]]:
    """Return when the table had how many rows, until it has all."""
    begin = time.monotonic()
    commits: list[tuple[float, int]] = []
    while not commits or commits[-1][1] < count:
        running.check(begin + _LOAD_SECONDS)
        found = lake.count()
        if found > (commits[-1][1] if commits else 0):
            commits.append((time.monotonic(), found))
            running.check_tasks()
        time.sleep(0.05)
    return commits


def _freshness(running: Running, inputs: Inputs, lake: IcebergLake | DeltaTables) -> Figures:
    seconds = _QUICK_SECONDS if inputs.share < 1 else _SECONDS
    topic, count = f"fresh-{lake.kind}", seconds * _RATE
    with AdminClient(inputs.bootstrap) as admin:
        checked(admin.create_topics([NewTopic(topic, 1)]))
    config = _config(lake, topic)
    with running.connector(config["name"], config):
        produced: list[float] = []
        work = inputs.bootstrap, topic, count, produced
        thread = threading.Thread(target=_produce, args=work, daemon=True)
        thread.start()
        commits = _commits(running, lake, count)
        thread.join()
    rows = [found for _, found in commits]
    # Record `number` is in the table with the first commit of more rows.
    ages = sorted(commits[bisect_right(rows, number)][0] - at for number, at in enumerate(produced))
    written = len(lake.data_files())
    return {
        f"{lake.kind}: freshness p50, s": ages[len(ages) // 2],
        f"{lake.kind}: freshness at most, s": ages[-1],
        f"{lake.kind}: data files after a minute": written * 60 / seconds,
    }


def _produce(bootstrap: str, topic: str, count: int, produced: list[float]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / _RATE - time.monotonic()))
        key, value = row(number)
        producer.produce(topic, value, key, partition=0)
        produced.append(time.monotonic())
        producer.poll(0)
    producer.flush()


def spark_writer(inputs: Inputs) -> Figures:
    """Return the rows per second of Spark, which reads and parses the same topic."""
    command = [sys.executable, "-m", "benchmarks.connect.lake", inputs.bootstrap, str(inputs.folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_SPARK_SECONDS, check=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _write_with_spark(bootstrap: str, folder: Path) -> Figures:
    from pyspark.sql.functions import col, from_json

    from moldau.pipelines import session

    spark = session("bench-parquet", master="local[2]")
    schema = "payload struct<id: long, name: string, amount: double, visits: int, note: string>"
    seconds = 0.0
    # The second run counts.
    for turn in range(2):
        begin = time.monotonic()
        records = (
            spark.read.format("moldau")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", "rows")
            .load()
        )
        values = records.select(from_json(col("value").cast("string"), schema).alias("envelope"))
        values.select("envelope.payload.*").write.parquet(str(folder / f"parquet-{turn}"))
        seconds = time.monotonic() - begin
    count = spark.read.parquet(str(folder / "parquet-1")).count()
    spark.stop()
    return {SPARK_RATE: count / seconds}


if __name__ == "__main__":
    print(json.dumps(_write_with_spark(sys.argv[1], Path(sys.argv[2]))))
