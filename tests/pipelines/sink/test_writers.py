"""`df.write.format("moldau")`: columns become records; invalid rows are refused."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from moldau.client.partitioners import partition_for_key
from moldau.testing import Cluster
from tests.pipelines.sink.records import committed, numbers, wait_for_more
from tests.pipelines.source.topics import Topics, options, stream


def write(frame: DataFrame, topics: Topics, **given: object) -> None:
    writer = frame.write.format("moldau").mode("append")
    writer.options(**options(topics.bootstrap_servers, given)).save()


OTHER_CASE = "value binary, timestamp string, headers array<struct<Key:string,Value:binary>>"


def test_keys_headers_partitions_timestamps_and_topics(spark: SparkSession, topics: Topics) -> None:
    one, two = topics.create(3), topics.create(2)
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    schema = (
        "topic string, key string, value binary, partition int, timestamp timestamp, "
        "headers array<struct<key:string,value:binary>>, extra double"
    )
    rows = [
        (one, "alice", b"1", None, at, [("trace", b"t1"), ("empty", None)], 0.0),
        (one, "alice", b"2", 2, at, [], 0.0),
        (one, None, None, 1, None, None, 0.0),
        (two, "bob", b"4", None, at, None, 0.0),
    ]
    write(spark.createDataFrame(rows, schema).coalesce(1), topics)
    found = {(m.topic(), m.value()): m for m in committed(topics, one, two)}
    assert set(found) == {(one, b"1"), (one, b"2"), (one, None), (two, b"4")}
    first = found[one, b"1"]
    assert (first.key(), first.headers()) == (b"alice", [("trace", b"t1"), ("empty", None)])
    assert first.timestamp()[1] == int(at.timestamp() * 1000)
    assert first.partition() == partition_for_key(b"alice", 3)
    assert found[one, b"2"].partition() == 2
    assert (found[one, None].key(), found[one, None].partition()) == (None, 1)
    assert abs(found[one, None].timestamp()[1] / 1000 - datetime.now(UTC).timestamp()) < 300
    # As in Spark's Kafka connector, a column timestamp of another type is ignored.
    other = spark.createDataFrame([(b"5", "now", [("A", b"b")])], OTHER_CASE)
    write(other, topics, topic=two)
    [last] = [m for m in committed(topics, two) if m.value() == b"5"]
    assert last.headers() == [("A", b"b")]
    assert abs(last.timestamp()[1] / 1000 - datetime.now(UTC).timestamp()) < 300
    # The option overrides the column.
    write(spark.createDataFrame(rows[:1], schema), topics, topic=two, **{"kafka.compression.type": "zstd"})
    assert sorted(m.value() for m in committed(topics, two)) == [b"1", b"4", b"5"]


def test_rows_of_a_key_keep_their_order_in_large_frames(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(3)
    frame = (
        spark.range(30_000).coalesce(1).selectExpr("cast(id as string) value", "cast(id % 7 as string) key")
    )
    write(frame, topics, topic=topic, **{"kafka.batch.size": 2000, "kafka.compression.type": "lz4"})
    messages = committed(topics, topic)
    assert sorted(int(m.value()) for m in messages) == list(range(30_000))
    for key in range(7):
        mine = [m for m in messages if m.key() == str(key).encode()]
        assert len({m.partition() for m in mine}) == 1
        assert [int(m.value()) for m in mine] == list(range(key, 30_000, 7))


@pytest.mark.parametrize(
    ("columns", "given", "sentence"),
    [
        ("'a' key", {"topic": "t"}, "Required attribute 'value' not found"),
        (
            "1 value",
            {"topic": "t"},
            r"value attribute unsupported type int. value must be a\(n\) string or binary",
        ),
        ("1L key, 'a' value", {"topic": "t"}, r"key must be a\(n\) string or binary"),
        ("'a' value", {}, "topic option required when no 'topic' attribute is present"),
        ("'a' value, 1L partition", {"topic": "t"}, r"partition must be a\(n\) int"),
        (
            "'a' value, map('a', 'b') headers",
            {"topic": "t"},
            r"headers must be a\(n\) array<struct<key:string",
        ),
        ("cast(null as string) topic, 'a' value", {}, "contains a null topic. Use the `topic` option"),
        ("'a' value", {"topic": "t", "delivery": "exactly-once"}, "needs the batch id of a streaming query"),
        ("'a' value", {"topic": "t", "delivery": "twice"}, "exactly-once or at-least-once"),
        ("'a' value", {"topicc": "t"}, "Did you mean 'topic'"),
        ("'a' value", {"topic": "t", "kafka.key.serializer": "x"}, "kafka.key.serializer' is not supported"),
    ],
)
def test_invalid_rows_and_options_are_refused(
    spark: SparkSession, topics: Topics, columns: str, given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException, match=sentence):
        write(spark.sql(f"select {columns}"), topics, **given)


def test_errors_of_the_cluster_are_raised(spark: SparkSession, topics: Topics) -> None:
    small = topics.create(max_message_bytes="2000")
    with pytest.raises(PySparkException, match="larger than the topic allows: raise"):
        write(spark.sql("select repeat('x', 5000) value"), topics, topic=small)
    with pytest.raises(PySparkException, match=r"(?i)partition 7"):
        write(spark.sql("select 'a' value, 7 partition"), topics, topic=small)
    with pytest.raises(PySparkException, match=r"(?i)not a topic|topic"):
        write(spark.sql("select 'a' value"), topics, topic="no such name")
    assert committed(topics, small) == []


#: How long the broker is away: longer than a minute is for tests that may take their time.
OUTAGE_SECONDS = float(os.environ.get("MOLDAU_OUTAGE_SECONDS", "2"))


@pytest.mark.timeout(240 + OUTAGE_SECONDS)
def test_stream_survives_the_restart_of_a_broker(spark: SparkSession, tmp_path: Path) -> None:
    with Cluster() as cluster:
        topics = Topics(cluster.bootstrap_servers)
        source, target = topics.create(2), topics.create(2)
        topics.fill(source, 0, *range(2000))
        frame = stream(spark, topics, subscribe=source, maxOffsetsPerTrigger=20).select("value")
        writer = frame.writeStream.format("moldau").option("checkpointLocation", str(tmp_path))
        query = writer.options(**options(topics.bootstrap_servers, {"topic": target})).start()
        try:
            wait_for_more(topics, target)
            cluster.kill()
            time.sleep(OUTAGE_SECONDS)
            assert query.isActive
            cluster.restart()
            topics.fill(source, 1, *range(2000, 2100))
            wait_for_more(topics, target)
            assert query.isActive
        finally:
            query.stop()
        rest = {"topic": target, "checkpointLocation": tmp_path}
        writer = stream(spark, topics, subscribe=source).select("value").writeStream.format("moldau")
        query = writer.options(**options(topics.bootstrap_servers, rest)).trigger(availableNow=True).start()
        assert query.awaitTermination(90)
        assert numbers(topics, target) == list(range(2100))
        topics.close()


def test_transaction_timeout_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    quickly = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with Cluster(config=quickly) as cluster:
        topics = Topics(cluster.bootstrap_servers)
        source, target = topics.create(), topics.create()
        topics.fill(source, 0, 1)

        def slow(batches: Iterator[Any]) -> Iterator[Any]:
            import time

            import pyarrow as pa

            for _ in batches:
                for _ in range(2):
                    # Enough to be sent at once, so that the transaction starts.
                    yield pa.RecordBatch.from_pydict({"value": [b"x" * 900_000] * 12})
                    time.sleep(4)  # longer than a worker takes to start on a busy machine

        frame = stream(spark, topics, subscribe=source).select("value").mapInArrow(slow, "value binary")
        sink = options(topics.bootstrap_servers, {"topic": target, "kafka.transaction.timeout.ms": 1000})
        writer = (
            frame.writeStream.format("moldau").option("checkpointLocation", str(tmp_path)).options(**sink)
        )
        query = writer.trigger(availableNow=True).start()
        with pytest.raises(PySparkException, match=r"Raise the option 'kafka.transaction.timeout.ms'"):
            query.awaitTermination(90)
        assert committed(topics, target) == []
        topics.close()
