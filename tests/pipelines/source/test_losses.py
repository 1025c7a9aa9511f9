"""Topics deleted, made anew, cleaned by retention, and a broker that goes away, while queries run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.base.ids import TopicPartition
from moldau.client.admin import checked
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Topics, run_now, running, stream

QUICK = {"fetchOffset.retryIntervalMs": 100}


def test_what_retention_removed(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(2)
    for partition in (0, 1):
        topics.fill(topic, partition, *range(5))
    run_now(stream(spark, topics, subscribe=topic), tmp_path)
    for partition in (0, 1):
        topics.fill(topic, partition, *range(5, 20))
    topics.admin.delete_records({TopicPartition(topic, 0): 15, TopicPartition(topic, 1): 8})
    with pytest.raises(Exception, match="Records are not there any more") as stopped:
        run_now(stream(spark, topics, subscribe=topic), tmp_path)
    assert f"{topic}-0: offsets 5 to 14 were removed, the log begins at 15 now (10 records)" in str(
        stopped.value
    )
    assert f"{topic}-1: offsets 5 to 7 were removed, the log begins at 8 now (3 records)" in str(
        stopped.value
    )
    went_on = run_now(stream(spark, topics, subscribe=topic, failOnDataLoss=False), tmp_path)
    assert sorted(went_on.values) == sorted([*range(15, 20), *range(8, 20)])


def test_a_topic_deleted_and_made_anew_while_running(
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
        with pytest.raises(
            Exception, match=f"{topic}-0: the partition was deleted; it was read up to offset 5"
        ):
            stopped.awaitTermination(30)
        topics.fill(other, 0, 6)
        eventually(lambda: went_on.values == [0, 1, 2, 3, 4, 6], timeout=30)
        topics.create(name=topic)
        topics.fill(topic, 0, 7, 8)
        eventually(lambda: went_on.values == [0, 1, 2, 3, 4, 6, 7, 8], timeout=30)
        assert query.isActive


def test_a_topic_made_anew_between_two_runs(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(5))
    run_now(stream(spark, topics, subscribe=topic), tmp_path)
    checked(topics.admin.delete_topics([topic]))
    eventually(lambda: topic not in topics.admin.list_topics())
    topics.create(name=topic)
    topics.fill(topic, 0, 7, 8)
    with pytest.raises(
        Exception, match="deleted and made anew: it was read up to offset 5 and now ends at 2"
    ):
        run_now(stream(spark, topics, subscribe=topic, **QUICK), tmp_path)
    anew = run_now(stream(spark, topics, subscribe=topic, failOnDataLoss=False, **QUICK), tmp_path)
    assert anew.values == [7, 8]


def test_a_broker_that_goes_away_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    with Cluster() as alone:
        topics = Topics(alone.bootstrap_servers)
        topic = topics.create()
        topics.fill(topic, 0, 1)
        frame = stream(spark, topics, subscribe=topic)
        with running(frame, tmp_path, topic) as (query, seen):
            eventually(lambda: seen.values == [1], timeout=40)
            alone.kill()
            # The reader notices at its next look, and waits.
            eventually(lambda: query.status["isTriggerActive"], timeout=20)
            alone.restart()
            topics.fill(topic, 0, 2, 3)
            eventually(lambda: seen.values == [1, 2, 3], timeout=40, what="reading goes on")
            assert query.isActive
        topics.close()
