"""Aggregates as tasks give what Kafka Streams wrote for the same records, however they are cut into
batches."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.dsl.windows import SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.tasks.aggregation import Aggregation, Functions, TimeWindowAggregation
from moldau.pipelines.streams.tasks.sessions import SessionAggregation
from moldau.pipelines.streams.tasks.sliding import SlidingAggregation
from moldau.pipelines.streams.tasks.task import Operator, Out
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import Aggregate
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import Written, comparable, recorded
from tests.harness.streams.scenes import SCENES
from tests.unit.pipelines.streams.tasks.task_runs import TaskRun

TEXT = Serdes.string()
SCENES_OF_TASKS = ("reduce", "aggregate", "hopping", "sliding", "session", "session-aggregate", "tumbling")
COGROUPS = ("cogroup", "cogroup-tumbling", "cogroup-sliding", "cogroup-session")


def operator_of(scene: str, *, final: bool = False) -> Operator:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    node = next(node for node in builder.build().nodes if isinstance(node.operation, Aggregate))
    assert isinstance(node.operation, Aggregate)
    assert node.value_serde is not None
    functions = Functions(node.operation, TEXT, (TEXT, TEXT), node.value_serde)
    match node.operation.windows:
        case TimeWindows() as windows:
            return TimeWindowAggregation(functions, windows, final)
        case SessionWindows() as windows:
            return SessionAggregation(functions, windows, final)
        case SlidingWindows() as windows:
            return SlidingAggregation(functions, windows, final)
    return Aggregation(functions)


def written(scene: str, given: list[Out]) -> list[Written]:
    return comparable(
        scene,
        (
            Written(
                f"{scene}-out",
                (each.key or b"").hex(),
                None if each.value is None else each.value.hex(),
                str(each.timestamp),
            )
            for each in given
        ),
    )


@pytest.mark.parametrize("scene", [*SCENES_OF_TASKS, *COGROUPS])
@pytest.mark.parametrize("cuts", [0, 1, 7])
def test_the_table_is_that_of_kafka_streams(scene: str, cuts: int) -> None:
    records = [
        (int(each.topic.endswith("-right")), each.key, each.value, each.timestamp) for each in inputs(scene)
    ]
    places = sorted(Random(cuts).sample(range(1, len(records)), cuts))
    run = TaskRun(operator_of(scene))
    given: list[Out] = []
    for begin, end in zip([0, *places], [*places, len(records)], strict=True):
        given += run.batch(*records[begin:end])
    assert written(scene, given) == recorded()[scene]


@pytest.mark.parametrize("scene", ["hopping", "sliding", "session-aggregate"])
def test_a_window_that_closes_says_its_last_result_once(scene: str) -> None:
    records = [(0, each.key, each.value, each.timestamp) for each in inputs(scene)]
    run = TaskRun(operator_of(scene, final=True))
    given = [out for record in records for out in run.batch(record)]
    keys = [out.key for out in given]
    assert len(keys) == len(set(keys))
    last = {each.key: each.value for each in recorded()[scene]}
    closed = {(key or b"").hex(): (out.value or b"").hex() for key, out in zip(keys, given, strict=True)}
    still_open = {key: value for key, value in last.items() if key not in closed}
    assert closed == {key: value for key, value in last.items() if key in closed}
    # Only the record that closed the others has windows that are open.
    assert all(key.startswith(b"end".hex()) for key in still_open)


def test_what_is_late_counts_for_nothing_and_state_goes_with_its_window() -> None:
    run = TaskRun(operator_of("tumbling"))
    run.batch((0, "a", "v1", 100), (0, "a", "v2", 200))
    assert run.batch((0, "b", "v1", 2_000)) != []
    assert run.maps["rows"].keys() == {b"b" + (2_000).to_bytes(8)}
    assert run.batch((0, "a", "v3", 300)) == []
    assert run.batch((0, "a", "v3", 1_100))[0].value == (1).to_bytes(8)


def test_records_without_key_or_value_are_not_counted() -> None:
    run = TaskRun(operator_of("reduce"))
    assert run.batch((0, None, "v1", 1), (0, "a", None, 2)) == []


def test_of_several_updates_in_a_batch_the_last_goes_on() -> None:
    run = TaskRun(operator_of("reduce"))
    given = run.batch((0, "a", "v1", 5), (0, "b", "v2", 6), (0, "a", "v3", 4))
    assert [(out.key, out.value, out.timestamp) for out in given] == [(b"b", b"v2", 6), (b"a", b"v1,v3", 5)]


@for_all(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 20))
def test_sliding_windows_are_those_of_their_definition(times: list[int], size_ms: int) -> None:
    """For every record the window that ends with it, and that behind it if it is not empty; also near the
    epoch, where windows cannot begin earlier."""
    operation = Aggregate("count", TableStore("store", queryable=False, materialized=True))
    functions = Functions(operation, TEXT, (TEXT,), Serdes.long())
    run = TaskRun(SlidingAggregation(functions, SlidingWindows(size_ms, 1_000), final=False))
    found: dict[int, int] = {}
    for time in times:
        for out in run.batch((0, "a", "v", time)):
            found[int.from_bytes((out.key or b"")[1:])] = int.from_bytes(out.value or b"")
    starts = {max(0, time - size_ms) for time in times}
    starts |= {time + 1 for time in times if any(time < each <= time + 1 + size_ms for each in times)}
    assert found == {start: sum(start <= each <= start + size_ms for each in times) for start in starts}


def counting(windows: TimeWindows | SessionWindows | SlidingWindows | None) -> Operator:
    operation = Aggregate("count", TableStore("counts", queryable=False, materialized=True), windows)
    functions = Functions(operation, TEXT, (TEXT,), Serdes.long())
    match windows:
        case TimeWindows():
            return TimeWindowAggregation(functions, windows, final=False)
        case SessionWindows():
            return SessionAggregation(functions, windows, final=False)
        case SlidingWindows():
            return SlidingAggregation(functions, windows, final=False)
    return Aggregation(functions)


@pytest.mark.parametrize(
    ("windows", "counted"),
    [
        (TimeWindows.of_size_with_no_grace(10), 2),
        (SessionWindows.of_inactivity_gap_with_no_grace(10), 2),
        (SlidingWindows.of_time_difference_with_no_grace(10), 1),
        (None, 1),
    ],
)
def test_records_without_a_value_count_in_time_windows_and_sessions_only(
    windows: TimeWindows | SessionWindows | SlidingWindows | None, counted: int
) -> None:
    given = TaskRun(counting(windows)).batch((0, "a", None, 100), (0, "a", "x", 100), (0, None, "x", 100))
    assert [each.value for each in given if each.value is not None] == [counted.to_bytes(8)]


LATE = b"late" + (20).to_bytes(8)


def test_a_window_of_many_keys_takes_no_longer_for_each() -> None:
    records = [(0, f"key-{number}", "x", 5) for number in range(20_000)]
    run = TaskRun(counting(TimeWindows.of_size_with_no_grace(10)))
    began = process_time()
    assert len(run.batch(*records)) == len(records)
    # A set of all keys that is read for each of them takes half a minute.
    assert process_time() - began < 10
    assert not [each for each in run.batch((0, "late", "x", 20), (0, "key-1", "x", 5)) if each.key != LATE]
    assert list(run.maps["due"]) == [(30).to_bytes(8)]
    assert list(run.maps["rows"]) == [LATE]
