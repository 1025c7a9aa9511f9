"""Batches with many keys: their state is read and written in groups."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from moldau.pipelines.queries import without_null_headers
from moldau.pipelines.streams import Consumed, Grouped, KafkaStreams, Materialized, StreamsBuilder
from moldau.pipelines.streams.physical.stored_map import _GROUP, _GROUP_BYTES, _groups
from tests.pipelines.source.topics import Topics
from tests.pipelines.streams.test_kafka_streams import config


def test_groups_are_limited_by_their_number_and_bytes() -> None:
    many = [bytes(10)] * (2 * _GROUP + 1)
    assert [len(group) for group in _groups(many)] == [_GROUP, _GROUP, 1]
    large = [bytes(_GROUP_BYTES // 2), bytes(_GROUP_BYTES), b"x", b"y"]
    assert [len(group) for group in _groups(large)] == [1, 1, 2]
    assert list(_groups([])) == []


def test_state_of_many_keys(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Fill, change and partly delete a table with more keys than a group has, and some large values."""
    source = topics.create(1)
    builder = StreamsBuilder()
    rows = builder.table(source, Consumed.with_("string", "json"))
    grouped = rows.group_by(lambda _, row: (row["of"], row["n"]), Grouped.with_("string", "json"))
    total = Materialized.with_("string", "json", name="total")
    grouped.aggregate(int, lambda _, n, all: all + n, lambda _, n, all: all - n, materialized=total)
    settings = config(topics, tmp_path)
    keys = range(3 * _GROUP)

    def run(values: dict[int, str | None]) -> dict[str, int]:
        topics.produce(source, [{"key": f"k{key}", "value": value} for key, value in values.items()])
        streams = KafkaStreams(builder.build(), settings, spark)
        streams.run_available()
        with streams.store("total") as store:
            return dict(store.all())

    def row(key: int, n: int) -> str:
        return json.dumps({"of": f"of{key % 2}", "n": n, "text": "x" * (60_000 if key % 100 == 0 else 1)})

    odd, even = sum(keys[1::2]), sum(keys[::2])
    assert run({key: row(key, key) for key in keys}) == {"of0": even, "of1": odd}
    changed: dict[int, str | None] = {key: row(key + 1, key) for key in keys[::2]}
    assert run(changed) == {"of0": 0, "of1": odd + even}
    assert run(dict.fromkeys(keys[1::2])) == {"of0": 0, "of1": even}


def test_python_receives_no_null_headers(spark: SparkSession) -> None:
    """Spark takes quadratic time to send lists that are null."""
    schema = "value int, headers array<struct<key: string, value: binary>>"
    frame = spark.createDataFrame([(1, None), (2, [("a", b"b")])], schema)
    found = without_null_headers(frame).sort("value").collect()
    assert [[tuple(each) for each in row.headers] for row in found] == [[], [("a", b"b")]]
    plain = frame.select("value")
    assert without_null_headers(plain) is plain
