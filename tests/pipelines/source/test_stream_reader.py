"""`spark.readStream.format("moldau")`: limits per trigger, restarts, group offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from moldau.base.ids import TopicPartition
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Collected, Topics, run_now, running, stream


def test_max_offsets_restart_splits_and_group_offsets(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    topics.fill(topic, 0, *range(30))
    topics.fill(topic, 1, *range(100, 110))
    name = f"lag-{topic}"
    first = run_now(stream(spark, topics, subscribe=topic, maxOffsetsPerTrigger=20), tmp_path, name)
    assert sorted(first.values) == [*range(30), *range(100, 110)]
    # In proportion to the lag: three times as much of the first partition.
    assert [len(batch) for batch in first.batches] == [20, 20]
    assert [sum(row.partition for row in batch) for batch in first.batches] == [5, 5]
    assert first.tasks == [2, 2]
    described = run_tool(
        "kafka-consumer-groups", "--bootstrap-server", topics.bootstrap_servers, "--describe", "--group", name
    )
    shown = sorted(line.split()[:6] for line in described.lines if topic in line)
    assert shown == [[name, topic, "0", "30", "30", "0"], [name, topic, "1", "10", "10", "0"]]

    topics.fill(topic, 0, *range(30, 50))
    second = run_now(stream(spark, topics, subscribe=topic, minPartitions=4), tmp_path, name)
    assert sorted(second.values) == [*range(30, 50)]
    assert second.tasks == [4]
    assert run_now(stream(spark, topics, subscribe=topic), tmp_path, name).batches == []


def test_batch_is_replayed_with_the_same_tasks(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Started at "latest" with four tasks; replayed by a query with other options and more records."""
    topic = topics.create()
    topics.fill(topic, 0, *range(5))
    frame = stream(spark, topics, subscribe=topic, startingOffsets="latest", minPartitions=4)
    seen = Collected()

    def fail(batch: DataFrame, number: int) -> None:
        seen(batch, number)
        if seen.values:
            raise RuntimeError("the sink is full")

    writer = frame.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="100 milliseconds").start()
    eventually(lambda: query.lastProgress is not None, timeout=30)
    topics.fill(topic, 0, *range(5, 25))
    with pytest.raises(Exception, match="the sink is full"):
        query.awaitTermination(30)
    topics.fill(topic, 0, *range(25, 30))
    again = run_now(stream(spark, topics, subscribe=topic, startingOffsets="latest"), tmp_path)
    assert again.batches[0] == seen.batches[-1]
    assert again.tasks[0] == seen.tasks[-1] == min(4, len(seen.batches[-1]))
    assert again.values == list(range(5, 30))


def test_first_batch_is_replayed_from_the_same_offsets(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """The first batch failed; other starting offsets at the restart apply to new queries only."""
    topic = topics.create()
    topics.fill(topic, 0, *range(3))
    frame = stream(spark, topics, subscribe=topic)

    def fail(batch: DataFrame, number: int) -> None:
        raise RuntimeError("no sink yet")

    writer = frame.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path))
    with pytest.raises(Exception, match="no sink yet"):
        writer.trigger(availableNow=True).start().awaitTermination(30)
    topics.fill(topic, 0, *range(3, 8))
    again = run_now(stream(spark, topics, subscribe=topic, startingOffsets="latest"), tmp_path)
    assert again.values == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [len(batch) for batch in again.batches] == [3, 5]


def test_new_partitions_and_topics_are_read(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    first = topics.create()
    topics.fill(first, 0, 1)
    frame = stream(spark, topics, subscribePattern=f"^{first}.*", groupId=f"{first}-group")
    with running(frame, tmp_path, first) as (query, seen):
        eventually(lambda: seen.values == [1], timeout=40)
        topics.admin.create_partitions({first: 2})
        topics.fill(first, 1, 2, 3)
        second = topics.create(name=f"{first}-second")
        topics.fill(second, 0, 4)
        eventually(lambda: sorted(seen.values) == [1, 2, 3, 4], timeout=40, what="new partitions are read")
        wanted = {TopicPartition(first, 0): 1, TopicPartition(first, 1): 2, TopicPartition(second, 0): 1}

        def shown() -> bool:
            found = topics.admin.list_group_offsets(f"{first}-group")
            return {each: at.offset for each, at in found.items()} == wanted  # type: ignore[union-attr]

        eventually(shown, what="the group shows the progress")
        assert query.lastProgress is not None


def test_starting_offset_after_the_end_is_an_error(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(3))
    wanted = {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":20}}}}'}
    with pytest.raises(Exception, match="offset 20 is requested, but the partition ends at 3"):
        run_now(stream(spark, topics, **wanted), tmp_path)
    lenient = stream(spark, topics, failOnDataLoss=False, **{"fetchOffset.numRetries": 1}, **wanted)
    assert run_now(lenient, tmp_path).values == []
    topics.fill(topic, 0, 3)
    assert run_now(lenient, tmp_path).values == [3]


def test_checkpoint_of_another_query_is_refused(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    one, other = topics.create(), topics.create()
    topics.fill(one, 0, 1)
    run_now(stream(spark, topics, subscribe=one), tmp_path)
    with pytest.raises(Exception, match=f"belongs to a query that reads {one}; this query reads {other}"):
        run_now(stream(spark, topics, subscribe=other), tmp_path)
