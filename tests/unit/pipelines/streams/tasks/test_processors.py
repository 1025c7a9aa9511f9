"""Custom processors: stores and their changelogs, punctuators, forwarding."""

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
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.dsl.stores import StoreBuilder, Stores
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.processors import ProcessorTask, ProcessSettings, uses_wall_clock
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, texts

TEXT, LONG = Serdes.string(), Serdes.long()


COUNTS = Stores.key_value_store("counts", TEXT, LONG)


def processing(supplier: Any, *stores: StoreBuilder, fixed_key: bool = False) -> ProcessorTask:
    return ProcessorTask(_settings(supplier, *stores, fixed_key=fixed_key))


def _settings(supplier: Any, *stores: StoreBuilder, fixed_key: bool = False) -> ProcessSettings:
    return ProcessSettings("app", supplier, stores, fixed_key, TEXT, TEXT, TEXT, TEXT)


class Counting(Processor):
    """Counts by key, and forwards all counts every ten milliseconds of stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.get_state_store("counts")
        self.punctuator = context.schedule(10, PunctuationType.STREAM_TIME, self.forward_counts)

    def process(self, record: Record) -> None:
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)
        if record.value == "stop":
            self.punctuator.cancel()

    def forward_counts(self, time_ms: int) -> None:
        for key, count in self.counts.all():
            self.context.forward(Record(key, str(count), time_ms))


def forwarded(given: list[Any]) -> list[Any]:
    return texts([each for each in given if each.target is None])


def test_stores_and_stream_time_are_kept_between_batches() -> None:
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


class WallClock(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self.forward_time)

    def process(self, record: Record) -> None:
        meta = self.context.record_metadata
        self.context.forward(record.with_value(f"{meta and meta.topic} {self.context.partition}"))

    def forward_time(self, time_ms: int) -> None:
        self.context.forward(Record("time", "none" if self.context.record_metadata is None else "?", time_ms))


def test_wall_clock_punctuator_is_called_between_records() -> None:
    operator = processing(WallClock)
    run = TaskRun(operator)
    assert texts(run.batch((0, "a", "x", 7), now_ms=1000)) == [("a", "topic-0 0", 7)]
    assert operator.next_tick() == 1100
    assert run.batch(now_ms=1050) == []
    assert texts(run.batch(now_ms=1320)) == [("time", "none", 1320)]
    assert operator.next_tick() == 1400
    assert uses_wall_clock(_settings(WallClock))
    assert not uses_wall_clock(_settings(Counting, COUNTS))


class ChangingKeys(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_key("other").with_value("y"))


def test_fixed_key_processor_cannot_change_the_key() -> None:
    run = TaskRun(processing(ChangingKeys, fixed_key=True))
    assert texts(run.batch((0, "a", "x", 1))) == [("a", "y", 1)]


class UsingUnknownStore(Processor):
    def process(self, record: Record) -> None:
        self.context.get_state_store("counts")


def test_unknown_store_is_rejected() -> None:
    with pytest.raises(StreamsException, match="not connected to the store 'counts', only to none"):
        TaskRun(processing(UsingUnknownStore)).batch((0, "a", "x", 1))


class ForwardingToChild(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record, record.value)


def test_record_is_forwarded_to_the_named_child() -> None:
    settings = ProcessSettings("app", ForwardingToChild, (), False, TEXT, TEXT, TEXT, TEXT, ("one", "two"))
    run = TaskRun(ProcessorTask(settings))
    assert [out.child for out in run.batch((0, "a", "two", 1), (0, "a", "one", 2))] == ["two", "one"]
    with pytest.raises(StreamsException, match="has no child three; its children are one, two"):
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
    ("at_once", "message"),
    [
        (True, r"an operator failed on the start of a batch: KeyError: 'no such thing'"),
        (False, "an operator failed on a punctuator or the end of a batch: ValueError: not now"),
    ],
)
def test_failure_in_init_or_punctuator_is_named(at_once: bool, message: str) -> None:
    run = TaskRun(processing(lambda: Failing(at_once)))
    with pytest.raises(StreamsException, match=message):
        for now_ms in (0, 10):
            run.batch((0, "a", "x", 1), now_ms=now_ms)
