"""A user's processor: stores, timers, what it forwards, and the changelogs of its stores."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.streams.dsl.processors import (
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
)
from moldau.pipelines.streams.dsl.serdes import Serdes, Window, Windowed
from moldau.pipelines.streams.dsl.stores import StoreBuilder, Stores
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.live_stores import KeyValueStore, SessionStore, WindowStore, open_store
from moldau.pipelines.streams.tasks.processing import Processing, ProcessSettings, uses_the_clock
from moldau.pipelines.streams.tasks.task import MemoryMap
from tests.unit.pipelines.streams.tasks.task_runs import TaskRun, texts

TEXT, LONG = Serdes.string(), Serdes.long()
COUNTS = Stores.key_value_store("counts", TEXT, LONG)


def processing(supplier: Any, *stores: StoreBuilder, fixed_key: bool = False) -> Processing:
    return Processing(_settings(supplier, *stores, fixed_key=fixed_key))


def _settings(supplier: Any, *stores: StoreBuilder, fixed_key: bool = False) -> ProcessSettings:
    return ProcessSettings("app", supplier, stores, fixed_key, TEXT, TEXT, TEXT, TEXT)


class Counting(Processor):
    """Counts by key, and tells all counts every ten milliseconds of stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.get_state_store("counts")
        self.timer = context.schedule(10, PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None:
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)
        if record.value == "stop":
            self.timer.cancel()

    def tell(self, time_ms: int) -> None:
        for key, count in self.counts.all():
            self.context.forward(Record(key, str(count), time_ms))


def forwarded(given: list[Any]) -> list[Any]:
    return texts([each for each in given if each.target is None])


def test_stores_and_stream_time_last_from_batch_to_batch() -> None:
    run = TaskRun(processing(Counting, COUNTS))
    given = run.batch((0, "b", "x", 103), (0, "a", "x", 105))
    assert forwarded(given) == [("b", "1", 103)]
    changes = {each.key: LONG.deserialize("", each.value) for each in given if each.target}
    assert changes == {b"a": 1, b"b": 1}
    assert {each.target for each in given if each.target} == {"app-counts-changelog"}
    assert forwarded(run.batch((0, "a", "x", 109))) == []
    assert forwarded(run.batch((0, "a", "x", 131), (0, "a", "stop", 139))) == [
        ("a", "3", 131),
        ("b", "1", 131),
    ]
    assert forwarded(run.batch((0, "a", "x", 500))) == []


class Reminding(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self.remind)

    def process(self, record: Record) -> None:
        meta = self.context.record_metadata
        self.context.forward(record.with_value(f"{meta and meta.topic} {self.context.partition}"))

    def remind(self, time_ms: int) -> None:
        self.context.forward(Record("time", "none" if self.context.record_metadata is None else "?", time_ms))


def test_the_clock_runs_timers_between_records() -> None:
    operator = processing(Reminding)
    run = TaskRun(operator)
    assert texts(run.batch((0, "a", "x", 7), now_ms=1000)) == [("a", "topic-0 0", 7)]
    assert operator.next_tick() == 1100
    assert run.batch(now_ms=1050) == []
    assert texts(run.batch(now_ms=1320)) == [("time", "none", 1320)]
    assert operator.next_tick() == 1400
    assert uses_the_clock(_settings(Reminding))
    assert not uses_the_clock(_settings(Counting, COUNTS))


class Renaming(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_key("other").with_value("y"))


def test_values_are_processed_under_their_own_key() -> None:
    run = TaskRun(processing(Renaming, fixed_key=True))
    assert texts(run.batch((0, "a", "x", 1))) == [("a", "y", 1)]


class Asking(Processor):
    def process(self, record: Record) -> None:
        self.context.get_state_store("counts")


def test_a_store_that_was_not_given_is_named() -> None:
    with pytest.raises(StreamsException, match="not given the store 'counts'"):
        TaskRun(processing(Asking)).batch((0, "a", "x", 1))


def test_a_store_of_keys() -> None:
    store = open_store(COUNTS, MemoryMap())
    assert isinstance(store, KeyValueStore)
    for number, key in enumerate(["b", "a", "ab", "c"]):
        store.put(key, number)
    assert list(store.all()) == [("a", 1), ("ab", 2), ("b", 0), ("c", 3)]
    assert list(store.range("ab", "b")) == [("ab", 2), ("b", 0)]
    assert list(store.prefix_scan(b"a")) == [("a", 1), ("ab", 2)]
    assert (store.put_if_absent("a", 9), store.put_if_absent("z", 9), store.get("z")) == (1, None, 9)
    assert (store.delete("a"), store.get("a"), store.approximate_num_entries()) == (1, None, 4)


def test_a_store_of_windows_forgets_what_is_out_of_retention() -> None:
    store = open_store(Stores.window_store("w", 100, 10, TEXT, LONG), MemoryMap())
    assert isinstance(store, WindowStore)
    for start in (0, 10, 20):
        store.put("a", start, start)
    store.put("b", 7, 10)
    assert store.fetch("a", 10) == 10
    assert list(store.fetch("a", 5, 20)) == [(10, 10), (20, 20)]
    assert list(store.fetch_all(10, 10)) == [
        (Windowed("a", Window(10, 20)), 10),
        (Windowed("b", Window(10, 20)), 7),
    ]
    store.put("a", None, 10)
    assert store.fetch("a", 10) is None
    store.put("a", 5, 110)
    assert [window.window.start for window, _ in store.all()] == [20, 110, 10]
    with pytest.raises(ValueError, match="w: "):
        Stores.window_store("w", 5, 10, TEXT, LONG)


def test_a_store_of_sessions() -> None:
    store = open_store(Stores.session_store("s", 1000, TEXT, LONG), MemoryMap())
    assert isinstance(store, SessionStore)
    first, second = Windowed("a", Window(0, 10)), Windowed("a", Window(50, 60))
    store.put(first, 1)
    store.put(second, 2)
    assert list(store.fetch("a")) == [(first, 1), (second, 2)]
    assert list(store.find_sessions("a", 11, 100)) == [(second, 2)]
    assert store.fetch_session("a", 0, 10) == 1
    store.remove(first)
    assert list(store.fetch("a")) == [(second, 2)]
    assert set(store.changes()) == {
        b"a" + bytes(7) + b"\x0a" + bytes(8),
        b"a" + bytes(7) + b"<" + bytes(7) + b"2",
    }


class Choosing(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record, record.value)


def test_a_record_is_forwarded_to_the_child_that_is_named() -> None:
    settings = ProcessSettings("app", Choosing, (), False, TEXT, TEXT, TEXT, TEXT, ("one", "two"))
    run = TaskRun(Processing(settings))
    assert [out.child for out in run.batch((0, "a", "two", 1), (0, "a", "one", 2))] == ["two", "one"]
    with pytest.raises(StreamsException, match="no operator three behind this processor, but one, two"):
        run.batch((0, "a", "three", 3))


class Failing(Processor):
    def __init__(self, at_once: bool) -> None:
        self._at_once = at_once

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        if self._at_once:
            raise KeyError("no such thing")
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, self._fail)

    def process(self, record: Record) -> None:
        return

    def _fail(self, _now_ms: int) -> None:
        raise ValueError("not now")


@pytest.mark.parametrize(
    ("at_once", "says"),
    [
        (True, r"an operator failed on the beginning of a batch: KeyError: 'no such thing'"),
        (False, "an operator failed on a timer or the end of a batch: ValueError: not now"),
    ],
)
def test_what_fails_beside_records_says_where(at_once: bool, says: str) -> None:
    run = TaskRun(processing(lambda: Failing(at_once)))
    with pytest.raises(StreamsException, match=says):
        for now_ms in (0, 10):
            run.batch((0, "a", "x", 1), now_ms=now_ms)
