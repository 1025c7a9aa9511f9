"""Records that come too late for a window leave for a topic of their own, as they were, once."""

from __future__ import annotations

import pytest

from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import Consumed, Grouped, Materialized, Produced, Suppressed
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.dsl.windows import SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.tasks.aggregation import Closing, Functions, TimeWindowAggregation
from moldau.pipelines.streams.tasks.sessions import SessionAggregation
from moldau.pipelines.streams.tasks.sliding import SlidingAggregation
from moldau.pipelines.streams.tasks.task import MemoryMap, Out, Row, run
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.late import late_topics
from moldau.pipelines.streams.topology.stages import stages
from moldau.pipelines.streams.topology.stateful import Aggregate

LATE = "app-counts-late"
TUMBLING = TimeWindows.of_size_and_grace(100, 50)
HOPPING = TUMBLING.advance_by(50)
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(100, 50)
SLIDING = SlidingWindows.of_time_difference_and_grace(100, 50)


def counting(windows: TimeWindows | SessionWindows | SlidingWindows, *, final: bool = False) -> Closing:
    store = TableStore("counts", queryable=True, materialized=True)
    text = Serdes.string()
    functions = Functions(Aggregate("count", store, windows), text, (text,), Serdes.long())
    made: Closing
    match windows:
        case TimeWindows():
            made = TimeWindowAggregation(functions, windows, final)
        case SessionWindows():
            made = SessionAggregation(functions, windows, final)
        case SlidingWindows():
            made = SlidingAggregation(functions, windows, final)
    made.late_topic = LATE
    return made


def batch(operator: Closing, maps: dict[str, MemoryMap], first: int, *timestamps: int) -> list[Out]:
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
def test_a_record_is_late_if_one_of_its_windows_is_closed(
    windows: TimeWindows | SessionWindows | SlidingWindows, timestamp: int, is_late: bool, final: bool
) -> None:
    operator = counting(windows, final=final)
    maps = {name: MemoryMap() for name in operator.maps}
    assert all(each.target is None for each in batch(operator, maps, 0, 1_000, 2_000))
    late = [each for each in batch(operator, maps, 7, timestamp) if each.target is not None]
    about = [
        ("h", b"x"),
        ("__streams.late.topic", b"in"),
        ("__streams.late.partition", b"3"),
        ("__streams.late.offset", b"7"),
    ]
    assert late == ([Out(b"k", b"v", timestamp, about, LATE)] if is_late else [])


def test_every_run_of_an_aggregate_has_a_topic_of_its_own() -> None:
    """An aggregate whose updates and last results are both wanted runs twice, and each run may drop other
    records."""

    def found(*, updates: bool) -> list[tuple[str, ...]]:
        builder = StreamsBuilder()
        groups = builder.stream("in", Consumed.with_("string", "string")).group_by_key(
            Grouped.with_("string", "string")
        )
        table = groups.windowed_by(TUMBLING).count(
            materialized=Materialized.as_("counts") if updates else None
        )
        last = table.suppress(Suppressed.until_window_closes(name="last"))
        last.to_stream(lambda key, value: key.key).to("out", Produced.with_("string", "long"))
        settings = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
        return [late_topics(stage, settings) for stage in stages(builder.build().nodes)]

    assert sorted(found(updates=True)) == [("app-counts-late",), ("app-last-late",)]
    assert found(updates=False) == [("app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-late",)]
