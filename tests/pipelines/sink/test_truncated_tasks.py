"""Tasks that are truncated in the middle of their rows must not be committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.harness.waiting import eventually
from tests.pipelines.sink.records import numbers
from tests.pipelines.source.topics import Topics, stream

PORTION = "spark.sql.execution.arrow.maxRecordsPerBatch"
RECORDS = 4000
#: So wide that many records are on their way to the sink when something happens to the others.
WIDTH = 4000


def breaking_off(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows that block in the middle the first time, and fail the second time."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = 0
        for batch in batches:
            for begin in range(0, batch.num_rows, 100):
                yield batch.slice(begin, 100)
                count += 1
                if count == RECORDS // 200:
                    obstacle(Path(folder))

    def obstacle(place: Path) -> None:
        if not (place / "slow").exists():
            (place / "slow").touch()
            time.sleep(60)
        if not (place / "failed").exists():
            (place / "failed").touch()
            raise OSError("an obstacle")

    return rows


@pytest.mark.timeout(180)
def test_stopped_query_and_failed_task_commit_nothing(
    spark: SparkSession, topics: Topics, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source, target = topics.create(), topics.create()
    topics.produce(source, [{"value": f"{number:0{WIDTH}}"} for number in range(RECORDS)])
    frame = stream(spark, topics, subscribe=source).select("value")
    slowly = frame.mapInArrow(breaking_off(str(tmp_path)), frame.schema)

    def start() -> StreamingQuery:
        writer = slowly.writeStream.format("moldau").option("topic", target)
        where = {"kafka.bootstrap.servers": topics.bootstrap_servers}
        checkpoint = str(tmp_path / "checkpoint")
        return writer.options(**where).option("checkpointLocation", checkpoint).start()

    # Rows reach the sink in small batches, so it has received some already.
    spark.conf.set(PORTION, "100")
    request.addfinalizer(lambda: spark.conf.unset(PORTION))
    query = start()
    eventually((tmp_path / "slow").exists, timeout=60)
    query.stop()
    assert numbers(topics, target) == []
    query = start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert (tmp_path / "failed").exists()
    assert numbers(topics, target) == list(range(RECORDS))
