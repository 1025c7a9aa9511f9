"""Late records are written to their topics exactly once, by native operators and by tasks, and after
crashes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.source import late_records
from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    JoinWindows,
    KafkaStreams,
    Materialized,
    Produced,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsException,
    Suppressed,
    TimeWindows,
    Topology,
)
from moldau.pipelines.streams.physical import aggregates, stage_frames
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import Aggregate
from tests.harness.clients.reading import messages
from tests.pipelines.source.topics import Topics
from tests.pipelines.streams.test_kafka_streams import config, names

MINUTE = 60_000
START = int(time.time() * 1000) // MINUTE * MINUTE - 60 * MINUTE
PARTITIONS = 2
#: Windowed tables of every kind; the first is a native aggregate, the others are tasks.
STORES = ("counts", "reduced", "sliding", "sessions")


def topology(left: str, right: str, out: str) -> Topology:
    builder = StreamsBuilder()
    text, produced = Consumed.with_("string", "string"), Produced.with_("string", "string")
    one, two = builder.stream(left, text), builder.stream(right, text)
    groups = one.map_values(str.upper).group_by_key(Grouped.with_("string", "string"))
    minutes = TimeWindows.of_size_with_no_grace(MINUTE)
    groups.windowed_by(minutes).count(materialized=Materialized.as_("counts"))
    hopping = groups.windowed_by(minutes.advance_by(MINUTE // 2))
    hopping.reduce(add, materialized=Materialized.as_("reduced"))
    sliding = groups.windowed_by(SlidingWindows.of_time_difference_with_no_grace(MINUTE))
    sliding.reduce(add, materialized=Materialized.as_("sliding"))
    sessions = groups.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(MINUTE))
    sessions.reduce(add, materialized=Materialized.as_("sessions"))
    closed = sessions.count().suppress(Suppressed.until_window_closes(name="closed"))
    closed.to_stream(lambda key, count: key.key).map_values(str).to(out, produced)
    windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
    joined = StreamJoined.with_("string", "string", "string", store_name="pairs")
    one.join(two, lambda left, right: left + right, windows, joined).to(out, produced)
    return builder.build()


def add(one: str, two: str) -> str:
    return one + two


def record(key: str, value: str, seconds: int) -> dict[str, object]:
    return {
        "key": key,
        "value": value,
        "timestamp": START + seconds * 1000,
        "partition": 1,
        "headers": {"of": value.encode()},
    }


Late = tuple[bytes, bytes, int, int, dict[str, bytes]]


def late(key: str, value: str, seconds: int, source: str, offset: int, original: str | None = None) -> Late:
    about = {"topic": source.encode(), "partition": b"1", "offset": str(offset).encode()}
    headers = {"of": (original or value).encode(), **{f"__streams.late.{k}": v for k, v in about.items()}}
    return key.encode(), value.encode(), START + seconds * 1000, 1, headers


def test_late_records_are_written_exactly_once(
    spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right, out = names("late", "left", "right", "out")
    for name in (left, right, out):
        topics.create(PARTITIONS, name=name)
    settings = config(topics, tmp_path)
    made = topology(left, right, out)

    def run() -> None:
        KafkaStreams(made, settings, spark).run_available()

    def found(store: str) -> list[Late]:
        read = messages(topics.bootstrap_servers, f"{settings['application.id']}-{store}-late", PARTITIONS)
        return [
            (each.key(), each.value(), each.timestamp()[1], each.partition(), dict(each.headers()))
            for each in read
        ]

    def tables() -> list[tuple[bytes, bytes]]:
        changelogs = [f"{settings['application.id']}-{name}-changelog" for name in STORES]
        return [
            (each.key(), each.value())
            for name in [*changelogs, out]
            for each in messages(topics.bootstrap_servers, name, PARTITIONS)
        ]

    (counted,) = {node.store.name for node in made.nodes if node.store and node.store.kind == "session"} - {
        "closed-store",
        "sessions",
    }
    stores = (*STORES, counted, "pairs-this-join-store")
    explained = KafkaStreams(made, settings, spark).explain()
    assert all(f"writes  {settings['application.id']}-{store}-late" in explained for store in stores)
    for name in (left, right):
        topics.produce(name, [record("k", "a", 0), record("k", "b", 30), record("k", "c", 600)])
    run()
    before = tables()
    assert not any(found(store) for store in stores)

    # Too late for all windows; on the right side, also records that can no longer join, or never could.
    topics.produce(left, [record("z", "late", 5), record("z", "later", 61)])
    topics.produce(right, [record("z", "right", 5), {**record("z", "keyless", 5), "key": None}])
    with monkeypatch.context() as patched:
        patched.setattr(stage_frames, "late_records", _fails)
        with pytest.raises(StreamsException, match="no late records today"):
            run()
    run()
    expected = [late("z", "LATE", 5, left, 3, "late"), late("z", "LATER", 61, left, 4, "later")]
    for store in stores[:-1]:
        assert found(store) == expected, store
    assert found("pairs-this-join-store") == [late("z", "late", 5, left, 3), late("z", "later", 61, left, 4)]
    assert found("pairs-other-join-store") == [late("z", "right", 5, right, 3)]
    assert tables() == before

    # The state after a driver has died between writing a batch and committing it.
    for commits in Path(tmp_path, settings["application.id"]).glob("*/commits"):
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)
    run()
    assert [len(found(store)) for store in stores] == [2] * len(stores)
    assert tables() == before


def _fails(rows: DataFrame, topics: Sequence[str]) -> DataFrame:
    raise StreamsException("no late records today")


def test_offset_range_of_a_batch_starts_where_the_batch_started() -> None:
    """Partitions without new records are omitted. New partitions and recreated topics are read from the
    beginning."""
    start = '{"a": {"0": 5, "1": 7}, "b": {"0": 9}, "$moldau": {"first": {"a": {"0": 1}}}}'
    end = '{"a": {"0": 8, "1": 7, "2": 3}, "b": {"0": 9}, "$moldau": {"recreated": ["b"]}}'
    assert late_records.offset_range(start, end).options() == {
        "assign": '{"a": [0, 2], "b": [0]}',
        "startingOffsets": '{"a": {"0": 5, "2": -2}, "b": {"0": -2}}',
        "endingOffsets": '{"a": {"0": 8, "2": 3}, "b": {"0": 9}}',
    }


@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows.of_size_with_no_grace(60),
        TimeWindows.of_size_with_no_grace(60).advance_by(20),
        TimeWindows.of_size_with_no_grace(60).advance_by(25),
        SessionWindows.of_inactivity_gap_with_no_grace(40),
    ],
)
def test_row_is_late_if_spark_has_closed_one_of_its_windows(
    spark: SparkSession, windows: TimeWindows | SessionWindows
) -> None:
    """Compare the rule with the windows that Spark assigns to every row, to the millisecond."""
    watermark_ms = START + 500
    store = TableStore("counts", queryable=True, materialized=True)
    at = F.timestamp_millis(F.col("id"))
    rows = spark.range(START + 300, START + 700).withColumn("timestamp", at)
    rows = rows.withColumn("key", F.lit(b"k")).withColumn("value", F.lit(b"v"))
    closed = F.unix_millis("window.end") <= watermark_ms
    window = aggregates._window(windows).alias("window")
    dropped = rows.groupBy("id", window).count().filter(closed).select("id").distinct().collect()
    late_ones = aggregates._late(Aggregate("count", store, windows), rows, watermark_ms).select("id")
    assert dropped
    assert sorted(late_ones.collect()) == sorted(dropped)
