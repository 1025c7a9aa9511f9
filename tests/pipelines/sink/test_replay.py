"""Batches that Spark replays: a task that was written is not written a second time.

A batch is half written because a task fails until a file exists. A complete batch is replayed by removing its
commit from the checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from moldau import pipelines
from moldau.base.ids import TopicPartition
from tests.harness.waiting import eventually
from tests.pipelines.sink.records import committed, numbers, written
from tests.pipelines.source.topics import Topics, options, stream


def run(frame: DataFrame, topics: Topics, checkpoint: Path, **sink: Any) -> None:
    """Run the query over all available records."""
    writer = frame.writeStream.format("moldau").option("checkpointLocation", str(checkpoint))
    query = writer.options(**options(topics.bootstrap_servers, sink)).trigger(availableNow=True).start()
    assert query.awaitTermination(90)


def forget_last_batch(checkpoint: Path) -> None:
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def failing_unless(path: Path, *values: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Fail at the rows with these values until the file exists."""
    wanted, flag = {str(value).encode() for value in values}, str(path)

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        import os

        for batch in batches:
            if not os.path.exists(flag) and wanted & set(batch.column("value").to_pylist()):
                raise RuntimeError("not yet")
            yield batch

    return step


def test_half_written_batch_is_completed_by_another_session(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """Three of five tasks are written; the restart has other numbers of tasks for source and shuffle."""
    source, plain, shuffled = topics.create(3), topics.create(2), topics.create(2)
    for partition in range(3):
        topics.fill(source, partition, *range(partition * 100, partition * 100 + 100))
    flag = tmp_path / "go"
    rows = "key binary, value binary"
    for given, shuffles in (({"minPartitions": 5}, "4"), ({"minPartitions": 2}, "2")):
        spark.conf.set("spark.sql.shuffle.partitions", shuffles)
        frame = stream(spark, topics, subscribe=source, **given).select("key", "value")
        steps = failing_unless(flag, 150, 299)
        for target, cut in ((plain, frame), (shuffled, frame.repartition("value"))):
            cut = cut.mapInArrow(steps, rows)
            if not flag.exists():
                with pytest.raises(PySparkException, match="not yet"):
                    run(cut, topics, tmp_path / target, topic=target)
                assert 0 < len(numbers(topics, target)) < 300
            else:
                run(cut, topics, tmp_path / target, topic=target)
                assert numbers(topics, target) == list(range(300))
        flag.touch()
    spark.conf.set("spark.sql.shuffle.partitions", "2")


def waiting(task: int, fail: Path, go: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Hold the rows of one task until it may continue or must fail."""
    stops, goes_on = str(fail), str(go)

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time

        from pyspark import TaskContext

        mine = TaskContext.get().partitionId() == task  # type: ignore[union-attr]
        for batch in batches:
            while mine and not os.path.exists(goes_on):
                if os.path.exists(stops):
                    raise RuntimeError("not yet")
                time.sleep(0.05)
            yield batch

    return step


def test_input_lost_from_a_half_written_batch(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Written tasks stay, the others write the remaining rows; where rows move, the query stops."""
    source, plain, hashed, dealt = topics.create(3), topics.create(), topics.create(), topics.create()
    for partition in range(3):
        topics.fill(source, partition, *range(partition * 100, partition * 100 + 100))
    fail, go = tmp_path / "fail", tmp_path / "go"
    rows = stream(spark, topics, subscribe=source, failOnDataLoss=False).select("value")
    shapes = {plain: rows, hashed: rows.repartition(3, "value"), dealt: rows.repartition(3)}
    cuts = {
        target: frame.mapInArrow(waiting(2, fail, go), "value binary") for target, frame in shapes.items()
    }
    queries = []
    for target, frame in cuts.items():
        writer = frame.writeStream.format("moldau").option("checkpointLocation", str(tmp_path / target))
        sink = options(topics.bootstrap_servers, {"topic": target})
        queries.append(writer.options(**sink).trigger(availableNow=True).start())
        wait_until_something_is_written(topics, target)
        fail.touch()
        with pytest.raises(PySparkException, match="not yet"):
            queries[-1].awaitTermination(60)
        fail.unlink()
    before = {target: numbers(topics, target) for target in cuts}
    topics.admin.delete_records({TopicPartition(source, n): 30 for n in range(3)})
    left = {number for number in range(300) if number % 100 >= 30}
    go.touch()
    for target in (plain, hashed):
        run(cuts[target], topics, tmp_path / target, topic=target)
        assert set(before[target]) - left, "records that are now lost were written"
        assert numbers(topics, target) == sorted(left | set(before[target]))
    with pytest.raises(PySparkException, match="set the sink's option failOnDataLoss to false"):
        run(cuts[dealt], topics, tmp_path / dealt, topic=dealt)
    run(cuts[dealt], topics, tmp_path / dealt, topic=dealt, failOnDataLoss=False)


def wait_until_something_is_written(topics: Topics, topic: str) -> None:
    eventually(lambda: written(topics, topic) > 0, timeout=60, every=0.1)


def test_tasks_that_write_nothing_store_their_state(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(2), topics.create(2)
    topics.fill(source, 0, *range(50), *range(50))
    frame = stream(spark, topics, subscribe=source).select("value").dropDuplicates(["value"])
    run(frame, topics, tmp_path / "c", topic=target)
    forget_last_batch(tmp_path / "c")
    # The state of the batch is deleted, too, so that it must be computed again.
    for delta in (tmp_path / "c" / "state").rglob("1.*"):
        delta.unlink()
    topics.fill(source, 1, *range(40, 60))
    run(frame, topics, tmp_path / "c", topic=target)
    assert numbers(topics, target) == list(range(60))


def test_unrecoverable_replays_are_errors(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create(1), topics.create(1)
    topics.fill(source, 0, *range(20))
    rows = stream(spark, topics, subscribe=source).select("value")
    checkpoint, copy = tmp_path / "c", tmp_path / "copy"
    run(rows, topics, checkpoint, topic=target)
    shutil.copytree(checkpoint, copy)
    forget_last_batch(checkpoint)
    with pytest.raises(PySparkException, match="had 20 rows when it was written, and has 18 when"):
        run(rows.where("cast(value as string) < 18"), topics, checkpoint, topic=target)
    run(rows, topics, checkpoint, topic=target)
    for more in (range(20, 30), range(30, 40)):
        topics.fill(source, 0, *more)
        run(rows, topics, checkpoint, topic=target)
    with pytest.raises(PySparkException, match="the checkpoint is older than the topics"):
        run(rows, topics, copy, topic=target)
    assert numbers(topics, target) == list(range(40))


def test_several_writes_in_one_foreach_batch_function(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, even, odd, twice = topics.create(2), topics.create(), topics.create(), topics.create()
    topics.fill(source, 0, *range(20))
    failing = [True]

    def write(frame: DataFrame, topic: str, **given: str) -> None:
        wanted = options(topics.bootstrap_servers, {"topic": topic, "delivery": "exactly-once", **given})
        frame.select("value").write.format("moldau").mode("append").options(**wanted).save()

    def split(batch: DataFrame, _: int) -> None:
        batch.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
        write(batch.where("cast(cast(value as string) as int) % 2 = 0"), even)
        write(batch, twice, sinkId="a")
        if failing.pop():
            raise RuntimeError("in between")
        write(batch.where("cast(cast(value as string) as int) % 2 = 1"), odd)
        write(batch, twice, sinkId="b")

    def same(batch: DataFrame, _: int) -> None:
        batch.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
        write(batch, odd)
        write(batch, odd)

    def start(function: Callable[[DataFrame, int], None], checkpoint: str) -> None:
        writer = stream(spark, topics, subscribe=source).writeStream.foreachBatch(function)
        query = (
            writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True).start()
        )
        assert query.awaitTermination(60)

    with pytest.raises(PySparkException, match="in between"):
        start(split, "split")
    failing.append(False)
    start(split, "split")
    assert numbers(topics, even, odd) == list(range(20))
    assert numbers(topics, twice) == sorted([*range(20), *range(20)])
    with pytest.raises(PySparkException, match="Set a different option 'sinkId' for each write"):
        start(same, "same")


def test_update_and_complete_mode(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Each batch is written once although its commit was removed."""
    source, updates, tables = topics.create(2), topics.create(2), topics.create()
    topics.produce(source, [{"key": key, "value": "x"} for key in ("a", "b", "a")])
    frame = stream(spark, topics, subscribe=source)
    counts = frame.groupBy("key").count().selectExpr("key", "cast(count as string) value")

    def start(topic: str, mode: Any) -> None:
        spec = pipelines.QuerySpec(
            name=topic,
            bootstrap_servers=topics.bootstrap_servers,
            checkpoint=str(tmp_path / topic),
            topic=topic,
            output_mode=mode,
            trigger={"availableNow": True},
        )
        assert pipelines.start(counts, spec).awaitTermination(60)

    for topic, mode in ((updates, "update"), (tables, "complete")):
        start(topic, mode)
        forget_last_batch(tmp_path / topic)
    topics.produce(source, [{"key": "b", "value": "x"}])
    for topic, mode in ((updates, "update"), (tables, "complete")):
        start(topic, mode)
    found = [(m.key(), m.value()) for m in committed(topics, updates)]
    assert sorted(found) == [(b"a", b"2"), (b"b", b"1"), (b"b", b"2")]
    found = [(m.key(), m.value()) for m in committed(topics, tables)]
    assert sorted(found) == [(b"a", b"2"), (b"a", b"2"), (b"b", b"1"), (b"b", b"2")]


def test_at_least_once_and_invalid_transaction_timeout(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(1), topics.create(1)
    topics.fill(source, 0, *range(10))
    rows = stream(spark, topics, subscribe=source).select("value")
    run(rows, topics, tmp_path / "often", topic=target, delivery="at-least-once")
    forget_last_batch(tmp_path / "often")
    run(rows, topics, tmp_path / "often", topic=target, delivery="at-least-once")
    assert numbers(topics, target) == sorted([*range(10), *range(10)])
    with pytest.raises(PySparkException, match=r"lower the option 'kafka.transaction.timeout.ms'"):
        run(rows, topics, tmp_path / "long", topic=target, **{"kafka.transaction.timeout.ms": 9_000_000})
