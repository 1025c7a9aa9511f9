"""Deleted and recreated topics, retention, and a broker that restarts, while queries run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Topics, run_now, running, stream

QUICK = {"fetchOffset.retryIntervalMs": 100}


def test_deleted_records_stop_the_query_or_are_skipped(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    for partition in (0, 1):
        topics.fill(topic, partition, *range(5))
    run_now(stream(spark, topics, subscribe=topic), tmp_path)
    for partition in (0, 1):
        topics.fill(topic, partition, *range(5, 20))
    topics.admin.delete_records({TopicPartition(topic, 0): 15, TopicPartition(topic, 1): 8})
    with pytest.raises(Exception, match="Records no longer exist") as stopped:
        run_now(stream(spark, topics, subscribe=topic), tmp_path)
    assert f"{topic}-0: offsets 5 to 14 were deleted; the log start offset is 15 (10 records)" in str(
        stopped.value
    )
    assert f"{topic}-1: offsets 5 to 7 were deleted; the log start offset is 8 (3 records)" in str(
        stopped.value
    )
    went_on = run_now(stream(spark, topics, subscribe=topic, failOnDataLoss=False), tmp_path)
    assert sorted(went_on.values) == sorted([*range(15, 20), *range(8, 20)])


def test_topic_deleted_and_recreated_while_the_query_runs(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, other = topics.create(), topics.create()
    topics.fill(topic, 0, *range(5))
    wanted = f"{topic},{other}"
    strict = stream(spark, topics, subscribe=wanted, **QUICK)
    lenient = stream(spark, topics, subscribe=wanted, failOnDataLoss=False, **QUICK)
    with (
        running(strict, tmp_path / "strict", f"{topic}-strict") as (stopped, seen),
        running(lenient, tmp_path / "lenient", f"{topic}-lenient") as (query, went_on),
    ):
        eventually(lambda: len(seen.values) == len(went_on.values) == 5, timeout=40)
        checked(topics.admin.delete_topics([topic]))
        with pytest.raises(Exception, match=f"{topic}-0: the partition was deleted; it was read to offset 5"):
            stopped.awaitTermination(30)
        topics.fill(other, 0, 6)
        eventually(lambda: went_on.values == [0, 1, 2, 3, 4, 6], timeout=30)
        topics.create(name=topic)
        topics.fill(topic, 0, 7, 8)
        eventually(lambda: went_on.values == [0, 1, 2, 3, 4, 6, 7, 8], timeout=30)
        assert query.isActive


def test_topic_recreated_between_two_runs(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(5))
    run_now(stream(spark, topics, subscribe=topic), tmp_path)
    make_anew(topics, topic)
    topics.fill(topic, 0, 7, 8)
    with pytest.raises(Exception, match="deleted and recreated: it was read to offset 5 and now ends at 2"):
        run_now(stream(spark, topics, subscribe=topic, **QUICK), tmp_path)
    anew = run_now(stream(spark, topics, subscribe=topic, failOnDataLoss=False, **QUICK), tmp_path)
    assert anew.values == [7, 8]


def make_anew(topics: Topics, topic: str, partitions: int = 1) -> None:
    checked(topics.admin.delete_topics([topic]))
    eventually(lambda: topic not in topics.admin.list_topics())
    topics.create(partitions, name=topic)


def shown(topics: Topics, group: str) -> dict[TopicPartition, int]:
    return {each: at.offset for each, at in checked(topics.admin.list_group_offsets(group)).items()}


def test_recreated_topic_that_has_grown_past_the_old_offset(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """Its offsets look unchanged; the id in the checkpoint detects it."""
    topic, other = topics.create(2), topics.create()
    topics.fill(topic, 0, *range(5))
    topics.fill(other, 0, 100)
    wanted = {"subscribe": f"{topic},{other}", "groupId": f"{topic}-group", **QUICK}
    run_now(stream(spark, topics, **wanted), tmp_path)
    make_anew(topics, topic, 2)
    topics.fill(topic, 0, *range(10, 20))
    topics.fill(topic, 1, 20)
    with pytest.raises(Exception, match="Records no longer exist") as stopped:
        run_now(stream(spark, topics, **wanted), tmp_path)
    for sentence in (
        f"{topic}-0: the topic was deleted and recreated: it was read to offset 5 and now ends at 10",
        "To read the recreated topic from its beginning, set the option failOnDataLoss to false",
    ):
        assert sentence in str(stopped.value)
    # Offsets of the old topic are not committed for the new one.
    assert set(shown(topics, f"{topic}-group")) == {TopicPartition(other, 0)}
    anew = run_now(stream(spark, topics, failOnDataLoss=False, **wanted), tmp_path)
    assert sorted(anew.values) == list(range(10, 21))
    assert shown(topics, f"{topic}-group")[TopicPartition(topic, 0)] == 10
    topics.fill(topic, 0, 30)
    assert run_now(stream(spark, topics, **wanted), tmp_path).values == [30]
    # With topicIds=false the query continues at its offsets.
    make_anew(topics, topic, 2)
    topics.fill(topic, 0, *range(12))
    topics.fill(topic, 1, 0)
    assert run_now(stream(spark, topics, topicIds=False, **wanted), tmp_path).values == [11]
    topics.fill(topic, 0, 12)
    assert run_now(stream(spark, topics, **wanted), tmp_path).values == [12]
    assert '"ids"' in max((tmp_path / "offsets").glob("[0-9]*"), key=lambda each: int(each.name)).read_text()


def test_topic_recreated_between_planning_and_commit_of_a_batch(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """The batch is planned and fails; when it is replayed, the topic has other records at its offsets."""
    topic, other = topics.create(), topics.create()
    topics.fill(topic, 0, *range(5))
    topics.fill(other, 0, 100)
    wanted = {"subscribe": f"{topic},{other}", **QUICK}

    def fail(batch: DataFrame, number: int) -> None:
        raise RuntimeError("the sink is full")

    writer = stream(spark, topics, **wanted).writeStream.foreachBatch(fail)
    with pytest.raises(Exception, match="the sink is full"):
        writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
    make_anew(topics, topic)
    topics.fill(topic, 0, *range(10, 20))
    with pytest.raises(Exception, match="with offsets 0 to 4 not yet read, and recreated"):
        run_now(stream(spark, topics, **wanted), tmp_path)
    anew = run_now(stream(spark, topics, failOnDataLoss=False, **wanted), tmp_path)
    assert [sorted(int(row.value) for row in batch) for batch in anew.batches] == [[100], [*range(10, 20)]]


def test_query_survives_the_restart_of_a_broker(spark: SparkSession, tmp_path: Path) -> None:
    with Cluster() as alone:
        topics = Topics(alone.bootstrap_servers)
        topic = topics.create()
        topics.fill(topic, 0, 1)
        frame = stream(spark, topics, subscribe=topic)
        with running(frame, tmp_path, topic) as (query, seen):
            eventually(lambda: seen.values == [1], timeout=40)
            alone.kill()
            # The reader retries at its next trigger.
            eventually(lambda: query.status["isTriggerActive"], timeout=20)
            alone.restart()
            topics.fill(topic, 0, 2, 3)
            eventually(lambda: seen.values == [1, 2, 3], timeout=40, what="reading goes on")
            assert query.isActive
        topics.close()
