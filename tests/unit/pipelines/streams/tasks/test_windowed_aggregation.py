"""Windows close, and late records are written to their topic."""

from __future__ import annotations

from time import process_time

import pytest

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.dsl.windows import SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.tasks.aggregation import Aggregation, Functions
from moldau.pipelines.streams.tasks.state import MemoryMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, run
from moldau.pipelines.streams.tasks.windowed_aggregation import WindowedAggregation
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import Aggregate
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import recorded
from tests.harness.streams.scenes import SCENES
from tests.unit.pipelines.streams.tasks.task_run import TaskRun

TEXT = Serdes.string()


def operator_of(scene: str, *, final: bool = False) -> Operator:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    node = next(node for node in builder.build().nodes if isinstance(node.operation, Aggregate))
    assert isinstance(node.operation, Aggregate)
    assert node.value_serde is not None
    functions = Functions(node.operation, TEXT, (TEXT, TEXT), node.value_serde)
    if node.operation.windows is None:
        return Aggregation(functions)
    return WindowedAggregation(functions, node.operation.windows, final=final)


@pytest.mark.parametrize("scene", ["hopping", "sliding", "session-aggregate"])
def test_closing_window_emits_its_final_result_once(scene: str) -> None:
    records = [(0, each.key, each.value, each.timestamp) for each in inputs(scene)]
    run = TaskRun(operator_of(scene, final=True))
    given = [out for record in records for out in run.batch(record)]
    keys = [out.key for out in given]
    assert len(keys) == len(set(keys))
    last = {each.key: each.value for each in recorded()[scene]}
    closed = {(key or b"").hex(): (out.value or b"").hex() for key, out in zip(keys, given, strict=True)}
    still_open = {key: value for key, value in last.items() if key not in closed}
    assert closed == {key: value for key, value in last.items() if key in closed}
    # Only the record that has closed the other windows has open windows.
    assert all(key.startswith(b"end".hex()) for key in still_open)


def test_late_record_is_ignored_and_state_of_closed_windows_is_deleted() -> None:
    run = TaskRun(operator_of("tumbling"))
    run.batch((0, "a", "v1", 100), (0, "a", "v2", 200))
    assert run.batch((0, "b", "v1", 2_000)) != []
    assert run.maps["rows"].keys() == {b"b" + (2_000).to_bytes(8)}
    assert run.batch((0, "a", "v3", 300)) == []
    assert run.batch((0, "a", "v3", 1_100))[0].value == (1).to_bytes(8)


def counting(windows: TimeWindows | SessionWindows | SlidingWindows | None) -> Operator:
    operation = Aggregate("count", TableStore("counts", queryable=False, materialized=True), windows)
    functions = Functions(operation, TEXT, (TEXT,), Serdes.long())
    return Aggregation(functions) if windows is None else WindowedAggregation(functions, windows)


@pytest.mark.parametrize(
    ("windows", "counted"),
    [
        (TimeWindows.of_size_with_no_grace(10), 2),
        (SessionWindows.of_inactivity_gap_with_no_grace(10), 2),
        (SlidingWindows.of_time_difference_with_no_grace(10), 1),
        (None, 1),
    ],
)
def test_null_values_are_counted_in_time_and_session_windows_only(
    windows: TimeWindows | SessionWindows | SlidingWindows | None, counted: int
) -> None:
    given = TaskRun(counting(windows)).batch((0, "a", None, 100), (0, "a", "x", 100), (0, None, "x", 100))
    assert [each.value for each in given if each.value is not None] == [counted.to_bytes(8)]


LATE = b"late" + (20).to_bytes(8)


def test_cost_per_record_does_not_grow_with_the_keys_of_a_window() -> None:
    records = [(0, f"key-{number}", "x", 5) for number in range(20_000)]
    run = TaskRun(counting(TimeWindows.of_size_with_no_grace(10)))
    began = process_time()
    assert len(run.batch(*records)) == len(records)
    # Reading the set of all watched keys for each of them would take half a minute.
    assert process_time() - began < 10
    assert not [each for each in run.batch((0, "late", "x", 20), (0, "key-1", "x", 5)) if each.key != LATE]
    assert list(run.maps["due"]) == [(30).to_bytes(8)]
    assert list(run.maps["rows"]) == [LATE]


LATE_TOPIC = "app-counts-late"


TUMBLING = TimeWindows.of_size_and_grace(100, 50)


HOPPING = TUMBLING.advance_by(50)


SESSIONS = SessionWindows.of_inactivity_gap_and_grace(100, 50)


SLIDING = SlidingWindows.of_time_difference_and_grace(100, 50)


def counting_late(
    windows: TimeWindows | SessionWindows | SlidingWindows, *, final: bool = False
) -> WindowedAggregation:
    store = TableStore("counts", queryable=True, materialized=True)
    text = Serdes.string()
    functions = Functions(Aggregate("count", store, windows), text, (text,), Serdes.long())
    return WindowedAggregation(functions, windows, final=final, late_topic=LATE_TOPIC)


def batch(
    operator: WindowedAggregation, maps: dict[str, MemoryMap], first: int, *timestamps: int
) -> list[Out]:
    rows = [
        Row(0, b"k", b"v", timestamp, [("h", b"x")], "in", 3, first + place)
        for place, timestamp in enumerate(timestamps)
    ]
    return run(operator, 3, maps, rows, 0)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize(
    ("windows", "timestamp", "is_late"),
    [
        (TUMBLING, 1_899, True),
        (TUMBLING, 1_900, False),
        # The window from 1900 is open, the one from 1850 is not.
        (HOPPING, 1_949, True),
        (HOPPING, 1_950, False),
        (SESSIONS, 1_849, True),
        (SESSIONS, 1_850, False),
        # All windows are closed; only the one that ends with the record is; none is.
        (SLIDING, 1_849, True),
        (SLIDING, 1_949, True),
        (SLIDING, 1_950, False),
    ],
)
def test_record_is_late_if_one_of_its_windows_is_closed(
    windows: TimeWindows | SessionWindows | SlidingWindows, timestamp: int, is_late: bool, final: bool
) -> None:
    operator = counting_late(windows, final=final)
    maps = {name: MemoryMap() for name in operator.maps}
    assert all(each.target is None for each in batch(operator, maps, 0, 1_000, 2_000))
    late = [each for each in batch(operator, maps, 7, timestamp) if each.target is not None]
    about = [
        ("h", b"x"),
        ("__streams.late.topic", b"in"),
        ("__streams.late.partition", b"3"),
        ("__streams.late.offset", b"7"),
    ]
    assert late == ([Out(b"k", b"v", timestamp, about, LATE_TOPIC)] if is_late else [])
