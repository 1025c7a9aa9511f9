"""Invalid programs are rejected when they are built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.pipelines.streams import (
    Consumed,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    Stores,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TopologyException,
)


def partitioner_without_topic(builder: StreamsBuilder) -> None:
    produced = Produced("string", "string", lambda topic, key, value, partitions: 0)
    builder.stream("a").to(lambda key, value, record: "b", produced)


def join_without_windows(builder: StreamsBuilder) -> None:
    builder.stream("a").join(builder.stream("b"), lambda one, two: one)


def table_with_windows(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(1)
    builder.stream("a").join(builder.table("b"), lambda one, two: one, windows)


def streams_with_joined(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(1)
    builder.stream("a").join(builder.stream("b"), lambda one, two: one, windows, Joined())


def global_without_selector(builder: StreamsBuilder) -> None:
    builder.stream("a").join(builder.global_table("b"), lambda one, two: one)


def table_with_stream(builder: StreamsBuilder) -> None:
    builder.table("a").join(builder.stream("b"), lambda one, two: one)  # type: ignore[arg-type]


def topic_twice(builder: StreamsBuilder) -> None:
    builder.stream("a").to("b")
    builder.table("a")


def different_resets(builder: StreamsBuilder) -> None:
    builder.stream("a", Consumed(offset_reset="earliest"))
    builder.stream("a", Consumed(offset_reset="latest"))


def name_twice(builder: StreamsBuilder) -> None:
    stream = builder.stream("a")
    stream.filter(lambda key, value: True, name="same")
    stream.peek(print, name="same")


def store_twice(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(materialized=Materialized.as_("same"))
    builder.stream("b").group_by_key().count(materialized=Materialized.as_("same"))


def store_missing(builder: StreamsBuilder) -> None:
    builder.stream("a").process(object, "missing")


def state_store_twice(builder: StreamsBuilder) -> None:
    for _ in range(2):
        builder.add_state_store(Stores.key_value_store("same", None, None))  # type: ignore[arg-type]


def suppressed_without_windows(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count().suppress(Suppressed.until_window_closes())


def illegal_name(builder: StreamsBuilder) -> None:
    builder.stream("a").filter(lambda key, value: True, name="a b")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (join_without_windows, "A stream-stream join needs windows: pass for example JoinWindows"),
        (table_with_windows, "A stream-table join has no windows"),
        (streams_with_joined, "A stream-stream join takes StreamJoined"),
        (global_without_selector, "needs key_selector"),
        (table_with_stream, "A table can be joined only with a table, not with a KStream"),
        (topic_twice, r"Topic a is read by both KSTREAM-SOURCE-\d+ and KTABLE-SOURCE-\d+"),
        (different_resets, "a is read with different offset resets, earliest and latest"),
        (name_twice, "Two operators are named same"),
        (store_twice, "both have a store named same"),
        (store_missing, "uses the state store missing: add it with add_state_store"),
        (state_store_twice, "State store same has already been added"),
        (suppressed_without_windows, "is not windowed: until_window_closes needs a windowed aggregate"),
        (illegal_name, "'a b' is not a valid name of an operator"),
        (lambda builder: builder.stream([]), "at least one topic"),
        (lambda builder: builder.table(""), "needs the name of a topic"),
        (partitioner_without_topic, "A partitioner needs a fixed topic"),
    ],
)
def test_invalid_program_is_rejected(program: Callable[[StreamsBuilder], Any], message: str) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyException, match=message):
        program(builder)
        builder.build()


IN = Consumed.with_("string", "string")


def test_table_joined_without_foreign_key_extractor_is_rejected() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left", IN), builder.table("right", IN)
    with pytest.raises(TopologyException, match="pass a foreign_key_extractor"):
        left.join(right, max, table_joined=TableJoined(name="of"))
