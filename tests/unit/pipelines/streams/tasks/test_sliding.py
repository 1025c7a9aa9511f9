"""Sliding windows."""

from __future__ import annotations

from hypothesis import given as for_all
from hypothesis import strategies as st

from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.dsl.windows import SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.tasks.aggregation import Aggregation, Functions
from moldau.pipelines.streams.tasks.task import Operator
from moldau.pipelines.streams.tasks.windowed_aggregation import WindowedAggregation
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import Aggregate
from tests.unit.pipelines.streams.tasks.task_run import TaskRun

TEXT = Serdes.string()


@for_all(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 20))
def test_sliding_windows_match_their_definition(times: list[int], size_ms: int) -> None:
    """For every record there is the window that ends with it, and the window right after it if that one is
    not empty; no window starts before the epoch."""
    run = TaskRun(counting(SlidingWindows(size_ms, 1_000)))
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
    return Aggregation(functions) if windows is None else WindowedAggregation(functions, windows)
