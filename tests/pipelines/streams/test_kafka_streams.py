"""Applications on Spark: expressions, dead letters, failing functions, killed drivers."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    KafkaStreams,
    KStream,
    Materialized,
    Processor,
    Produced,
    Record,
    Serdes,
    State,
    Stores,
    StreamsBuilder,
    StreamsException,
    TableJoined,
    TimeWindows,
)
from tests.harness.clients.reading import messages
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Topics
from tests.pipelines.streams.counting import Counting, Driver

TEXT = Produced.with_("string", "string")
ORDER = Serdes.json("item string, amount bigint, at bigint")


def config(topics: Topics, folder: Path, **more: str) -> dict[str, str]:
    settings = {key.replace("_", "."): value for key, value in more.items()}
    application = f"app-{uuid.uuid4().hex[:6]}"
    return {
        "application.id": application,
        "bootstrap.servers": topics.bootstrap_servers,
        "state.dir": str(folder),
        **settings,
    }


def names(prefix: str, *suffixes: str) -> list[str]:
    unique = uuid.uuid4().hex[:6]
    return [f"{prefix}-{suffix}-{unique}" for suffix in suffixes]


def test_expressions_run_natively(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, large, cheap, rest, sums = names("native", "in", "large", "cheap", "rest", "sums")
    for name in (source, large, cheap, rest, sums):
        topics.create(2, name=name)
    builder = StreamsBuilder()
    orders = builder.stream(source, Consumed("string", ORDER, timestamp_extractor="value.at"))
    valid = orders.filter_not("value.item is null")
    valid.filter(F.col("value.amount") > 10).map_values(
        "named_struct('what', value.item, 'cents', value.amount * 100)"
    ).to(large, Produced.with_("string", "json"))
    branches = valid.split("by-").branch("value.amount < 5", "cheap").default_branch("rest")
    branches["by-cheap"].to(cheap)
    branches["by-rest"].select_key("value.item").to(rest, Produced(Serdes.string(), ORDER))
    valid.select_key("value.item").group_by_key(Grouped(Serdes.string(), ORDER)).aggregate_native(
        "sum(value.amount)", materialized=Materialized.with_("string", "long", name="sums")
    ).to_stream().to(sums)
    streams = KafkaStreams(builder.build(), config(topics, tmp_path), spark)
    explained = streams.explain()
    assert explained.count("Python  nothing: the query is fully native") == 2
    assert "named_struct" in explained or "cents" in explained
    rows = [("x", "tea", 3), ("y", "tea", 20), ("x", "cup", 7), ("y", None, 50)]
    # Retention could delete old records before they are read.
    now = int(time.time() * 1000)
    values = [
        {"key": key, "value": json.dumps({"item": item, "amount": amount, "at": now + place})}
        for place, (key, item, amount) in enumerate(rows)
    ]
    topics.produce(source, values)
    streams.run_available()

    def found(topic: str) -> list[tuple[bytes, Any]]:
        return sorted((each.key(), each.value()) for each in messages(topics.bootstrap_servers, topic, 2))

    assert found(large) == [(b"y", b'{"what":"tea","cents":2000}')]
    assert [key for key, _ in found(cheap)] == [b"x"]
    assert [key for key, _ in found(rest)] == [b"cup", b"tea"]
    assert found(sums) == [(b"cup", (7).to_bytes(8)), (b"tea", (23).to_bytes(8))]
    (one,) = messages(topics.bootstrap_servers, large, 2)
    assert one.timestamp()[1] == now + 1


def test_dead_letters_are_written_and_a_failing_function_stops_the_application(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target, dead = names("letters", "in", "out", "dead")
    for name in (source, target, dead):
        topics.create(1, name=name)
    builder = StreamsBuilder()
    numbers = builder.stream(source, Consumed.with_("string", "json"))
    _doubled(numbers).to(target, Produced.with_("string", "json"))
    settings = config(topics, tmp_path, errors_dead_letter_queue_topic_name=dead, commit_interval_ms="100")
    with KafkaStreams(builder.build(), settings, spark) as streams:
        topics.produce(
            source, [{"key": "a", "value": "1", "headers": {"h": b"x"}}, {"key": "b", "value": "{"}]
        )
        eventually(lambda: len(messages(topics.bootstrap_servers, target)) == 1, timeout=60)
        (good,) = messages(topics.bootstrap_servers, target)
        assert (good.key(), good.value(), good.headers()) == (b"a", b"2", [("h", b"x")])
        (bad,) = messages(topics.bootstrap_servers, dead)
        assert (bad.key(), bad.value()) == (b"b", b"{")
        assert dict(bad.headers())["__streams.errors.offset"] == b"1"
        assert streams.state is State.RUNNING
        topics.produce(source, [{"key": "c", "value": "[]"}])
        with pytest.raises(StreamsException, match=rf"doubling failed on {source}-0@2: TypeError: .*list"):
            streams.await_termination(60)
        assert streams.state is State.ERROR
    assert not any(query.isActive for query in streams.queries)


def _doubled(stream: KStream) -> KStream:
    return stream.map_values(lambda number: number + number - 0, name="doubling")


def test_mismatched_serde_and_changed_program_are_rejected(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, other = (topics.create(1) for _ in range(2))
    topics.produce(source, [{"key": "a", "value": "not a long"}])
    settings = config(topics, tmp_path)

    def program(topic: str) -> KafkaStreams:
        builder = StreamsBuilder()
        grouped = builder.stream(topic, Consumed.with_("string", "long")).group_by_key()
        grouped.reduce(lambda one, two: one + two, name="adding")
        return KafkaStreams(builder.build(), settings, spark)

    with pytest.raises(
        StreamsException, match=rf"adding cannot deserialize {source}-0@0 or serialize .*8 bytes"
    ):
        program(source).run_available()
    with pytest.raises(StreamsException, match=rf"state of adding .* over {source}, .* over {other}\. Name"):
        program(other).start()


def test_missing_source_topic_is_rejected(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("missing-topic", Consumed.with_("string", "string")).foreach(lambda key, value: None)
    with pytest.raises(StreamsException, match="reads topics that do not exist: missing-topic"):
        KafkaStreams(builder.build(), config(topics, tmp_path), spark).start()


def test_state_survives_a_killed_driver(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Counts and sums are resumed: no record is lost or counted twice."""
    source, counts, sums = names("killed", "in", "counts", "sums")
    for name in (source, counts, sums):
        topics.create(2, name=name)
    program = Counting(topics.bootstrap_servers, source, counts, sums, str(tmp_path / "state"))
    first, second = range(60), range(60, 100)

    def send(numbers: range) -> None:
        topics.produce(source, [{"key": "abc"[each % 3], "value": str(each)} for each in numbers])

    send(first)
    with Driver(program, tmp_path) as driver:
        eventually(lambda: len(messages(topics.bootstrap_servers, counts, 2)) >= 3, timeout=90)
        driver.kill()
    send(second)
    program.streams(spark).run_available()
    last_counts = {
        each.key(): int.from_bytes(each.value()) for each in messages(topics.bootstrap_servers, counts, 2)
    }
    assert last_counts == {b"a": 34, b"b": 33, b"c": 33}
    last_sums = {each.key(): json.loads(each.value()) for each in messages(topics.bootstrap_servers, sums, 2)}
    numbers = [*first, *second]
    assert last_sums == {
        key.encode(): sum(each for each in numbers if each % 3 == place) for place, key in enumerate("abc")
    }


def test_application_in_another_thread_does_not_stop_the_session(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target = (topics.create(1) for _ in range(2))
    builder = StreamsBuilder()
    builder.stream(source, Consumed.with_("string", "string")).to(target, TEXT)

    def run() -> None:
        streams = KafkaStreams(builder.build(), config(topics, tmp_path))
        streams.run_available()
        streams.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result(120)
    assert spark.range(3).count() == 3


def test_native_time_windows_count_null_values(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, target = (topics.create(1) for _ in range(2))
    topics.produce(source, [{"key": "a", "value": "x"}, {"key": "a"}, {"value": "without a key"}])
    builder = StreamsBuilder()
    grouped = builder.stream(source, Consumed.with_("string", "string")).group_by_key()
    windows = TimeWindows.of_size_with_no_grace(timedelta(days=30_000))
    counts = grouped.windowed_by(windows).count()
    counts.to_stream().to(target, Produced(Serdes.time_windowed("string", windows.size_ms), "long"))
    KafkaStreams(builder.build(), config(topics, tmp_path), spark).run_available()
    (counted,) = messages(topics.bootstrap_servers, target, 1)
    assert (counted.key(), int.from_bytes(counted.value())) == (b"a" + bytes(8), 2)


class StoringOnly(Processor):
    """Writes to its store, and forwards nothing."""

    def init(self, context: Any) -> None:
        self.seen = context.get_state_store("seen")

    def process(self, record: Record) -> None:
        self.seen.put(record.key, (self.seen.get(record.key) or 0) + 1)


def test_processor_without_children_runs(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source = topics.create(1)
    topics.produce(source, [{"key": key, "value": "x"} for key in "aba"])
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store("seen", Serdes.string(), Serdes.long()))
    builder.stream(source, Consumed.with_("string", "string")).process(StoringOnly, "seen")
    streams = KafkaStreams(builder.build(), config(topics, tmp_path), spark)
    streams.run_available()
    with streams.store("seen") as seen:
        assert dict(seen.all()) == {"a": 2, "b": 1}


def test_foreign_key_join_follows_changes_of_both_tables(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """The tables have different numbers of partitions, the orders are not partitioned by murmur2, and the
    queries run concurrently. With a dead letter topic, the internal messages of the join are no dead
    letters."""
    orders, customers, dead = topics.create(3), topics.create(2), topics.create(1)
    builder = StreamsBuilder()
    joined = builder.table(orders, Consumed.with_("string", "json")).left_join(
        builder.table(customers, Consumed.with_("string", "string")),
        lambda order, customer: [order["n"], customer],
        foreign_key_extractor=lambda order: order["of"],
        table_joined=TableJoined(name="by-name"),
        materialized=Materialized.with_("string", "json", name="named"),
    )
    assert joined.queryable_store_name == "named"
    joined.group_by(lambda key, row: (str(row[1]), row), Grouped.with_("string", "json")).count(
        materialized=Materialized.with_("string", "long", name="orders-of")
    )
    named: dict[str, str | None] = {}
    rows: dict[str, Any] = {}

    def customer(key: str, name: str | None) -> None:
        topics.produce(customers, [{"key": key, "value": name}], partitioner="murmur2_random")
        named[key] = name

    def order(number: int, of: str) -> None:
        row = {"n": number, "of": of}
        topics.produce(orders, [{"key": f"o{number % 12}", "value": json.dumps(row)}])
        rows[f"o{number % 12}"] = row

    def expected() -> dict[str, list[Any]]:
        return {key: [row["n"], named.get(row["of"])] for key, row in rows.items()}

    def counted() -> dict[str, int]:
        return Counter(str(name) for _, name in expected().values())

    often, never = {"commit_interval_ms": "100"}, {"repartition_purge_interval_ms": "3600000"}
    settings = config(topics, tmp_path, **often, **never, errors_dead_letter_queue_topic_name=dead)
    responses = f"{settings['application.id']}-by-name-subscription-response-topic"
    streams = KafkaStreams(builder.build(), settings, spark)
    with streams, streams.store("named") as store, streams.store("orders-of") as counts:
        for place in range(12):
            order(place, "abc"[place % 3])
        for key in "abx":
            customer(key, f"{key}1")
        eventually(lambda: dict(store.all()) == expected(), timeout=120, what="the first results")
        for place in range(12, 20):
            order(place, "cab"[place % 3])
            customer("abc"[place % 3], f"name-{place}")
        customer("a", None)
        topics.produce(orders, [{"key": "o11", "value": None}])
        rows.pop("o11")
        eventually(lambda: dict(store.all()) == expected(), timeout=120, what="the changed results")
        eventually(lambda: {key: n for key, n in counts.all() if n} == counted(), timeout=120, what="counts")
        assert messages(topics.bootstrap_servers, dead) == []
        response_headers = [
            dict(each.headers() or ()) for each in messages(topics.bootstrap_servers, responses, 3)
        ]
        assert {len(headers["__streams.row"]) for headers in response_headers} == {12}
        assert streams.state is State.RUNNING
