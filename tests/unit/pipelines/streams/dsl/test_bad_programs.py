"""Programs that make no sense are refused when they are written, with a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from moldau.pipelines.streams import (
    Consumed,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    StreamsException,
    Suppressed,
    TimeWindows,
    TopologyException,
)
from moldau.pipelines.streams.application.settings import StreamsSettings


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
    builder.stream("a").process(object, "nowhere")


def state_store_twice(builder: StreamsBuilder) -> None:
    for _ in range(2):
        builder.add_state_store(Stores.key_value_store("same", None, None))  # type: ignore[arg-type]


def suppressed_without_windows(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count().suppress(Suppressed.until_window_closes())


def illegal_name(builder: StreamsBuilder) -> None:
    builder.stream("a").filter(lambda key, value: True, name="a b")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (join_without_windows, "Two streams are joined in windows: give for example JoinWindows"),
        (table_with_windows, "joined with a table without windows"),
        (streams_with_joined, "joined with StreamJoined"),
        (global_without_selector, "needs key_selector"),
        (table_with_stream, "A table is joined with a table, not with a KStream"),
        (topic_twice, r"Topic a is read by KSTREAM-SOURCE-\d+ and by KTABLE-SOURCE-\d+"),
        (different_resets, "read twice, with the offset resets earliest and latest"),
        (name_twice, "Two operators have the name same"),
        (store_twice, "both have a store same"),
        (store_missing, "wants the state store nowhere"),
        (state_store_twice, "There is a state store same already"),
        (suppressed_without_windows, "has no windows that could close"),
        (illegal_name, "'a b' cannot name an operator"),
        (lambda builder: builder.stream([]), "at least one topic"),
        (lambda builder: builder.table(""), "name of its topic"),
        (partitioner_without_topic, "name the topic in to"),
    ],
)
def test_programs_that_make_no_sense(program: Callable[[StreamsBuilder], Any], says: str) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyException, match=says):
        program(builder)
        builder.build()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TimeWindows.of_size_with_no_grace(0), "must be positive"),
        (lambda: TimeWindows.of_size_with_no_grace(10).advance_by(11), "advance by 1 to 10 ms"),
        (lambda: TimeWindows.of_size_and_grace(10, -1), "grace period must not be negative"),
        (lambda: SlidingWindows.of_time_difference_with_no_grace(-1), "must not be negative"),
        (lambda: SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=-1)), "not be negative"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(5).before(-10), "end before it begins"),
    ],
)
def test_windows_that_make_no_sense(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_durations_are_milliseconds_or_timedeltas() -> None:
    assert TimeWindows.of_size_with_no_grace(timedelta(minutes=1)).size_ms == 60_000
    with pytest.raises(TypeError, match="milliseconds or a timedelta"):
        TimeWindows.of_size_with_no_grace("1 minute")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"bootstrap.servers": "a:1"}, "application.id is missing"),
        ({"application.id": "a"}, "bootstrap.servers is missing"),
        (
            {"application.id": "a", "bootstrap.servers": "a:1", "processing.guarantee": "never"},
            "exactly_once_v2 or at_least_once",
        ),
        (
            {"application.id": "a", "bootstrap.servers": "a:1", "deserialization.exception.handler": "weep"},
            "fail or continue, not 'weep'",
        ),
    ],
)
def test_settings_that_make_no_sense(config: dict[str, str], says: str) -> None:
    with pytest.raises(StreamsException, match=says):
        StreamsSettings.of(config)
