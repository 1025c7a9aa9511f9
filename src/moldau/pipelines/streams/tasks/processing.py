"""Runs a user's processor: its context, its stores, its timers.

Timers that `init` schedules are known by their place in the order; when each is due next is kept in the
task's state, and so is stream time. A timer of stream time runs after the record that made it due, with the
stream's time; one of the clock runs between batches. A timer that missed several of its times runs once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

from moldau.client.records import Headers
from moldau.pipelines.streams.dsl.processors import Processor, PunctuationType, Record, RecordMetadata
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.live_stores import StateStore, open_store
from moldau.pipelines.streams.tasks.task import MemoryMap, Operator, Out, Row, Task

_TIME = Struct(">q")
_STREAM_TIME = b"stream-time"
_NEVER = -1


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What the program says of a processor."""

    application_id: str
    supplier: Callable[[], Processor]
    stores: tuple[StoreBuilder, ...]
    fixed_key: bool
    key_serde: Serde
    value_serde: Serde
    result_key_serde: Serde
    result_value_serde: Serde
    #: The operators behind the processor, to which it may forward by name.
    children: tuple[str, ...] = ()

    def changelog(self, store: str) -> str:
        return f"{self.application_id}-{store}-changelog"


@dataclass(slots=True)
class Timer:
    """Due at `next_ms`, or never again."""

    interval_ms: int
    punctuation: PunctuationType
    callback: Callable[[int], None]
    next_ms: int

    def cancel(self) -> None:
        self.next_ms = _NEVER

    def run_if_due(self, now_ms: int) -> None:
        if not 0 <= self.next_ms <= now_ms:
            return
        due = self.next_ms
        self.next_ms = due + ((now_ms - due) // self.interval_ms + 1) * self.interval_ms
        self.callback(now_ms)


class Context:
    """The `ProcessorContext` of a task."""

    def __init__(self, settings: ProcessSettings, task: Task, stores: dict[str, StateStore]) -> None:
        self.application_id = settings.application_id
        self.partition = task.partition
        self.record_metadata: RecordMetadata | None = None
        self.timestamp = 0
        self.headers: Headers = ()
        self.timers: list[Timer] = []
        self.stream_time = _NEVER
        self._key: Any = None
        self._settings = settings
        self._task = task
        self._stores = stores

    def begin(self, row: Row, key: Any) -> None:
        self._key = key
        self.timestamp, self.headers = row.timestamp, row.headers
        self.record_metadata = RecordMetadata(row.topic, row.partition, row.offset)
        self.stream_time = max(self.stream_time, row.timestamp)

    def punctuate(self, punctuation: PunctuationType, now_ms: int) -> None:
        self.record_metadata, self.headers, self.timestamp = None, (), now_ms
        for timer in self.timers:
            if timer.punctuation is punctuation:
                timer.run_if_due(now_ms)

    def forward(self, record: Record, child_name: str | None = None) -> None:
        if child_name is not None and child_name not in self._settings.children:
            known = ", ".join(self._settings.children) or "none"
            raise StreamsException(f"There is no operator {child_name} behind this processor, but {known}")
        fixed = self._settings.fixed_key and self.record_metadata is not None
        key = self._settings.result_key_serde.serialize("", self._key if fixed else record.key)
        value = self._settings.result_value_serde.serialize("", record.value)
        self._task.emit(Out(key, value, record.timestamp, record.headers, child=child_name))

    def schedule(
        self, interval_ms: int, punctuation: PunctuationType, callback: Callable[[int], None]
    ) -> Timer:
        if interval_ms < 1:
            raise ValueError(f"A timer's interval must be 1 ms at least, it is {interval_ms}")
        stored = self._task.maps["task"].get(_timer_key(len(self.timers)))
        first = 0 if punctuation is PunctuationType.STREAM_TIME else self._task.now_ms + interval_ms
        due = first if stored is None else int(_TIME.unpack(stored)[0])
        self.timers.append(Timer(interval_ms, punctuation, callback, due))
        return self.timers[-1]

    def get_state_store(self, name: str) -> StateStore:
        if name not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            raise KeyError(f"This processor was not given the store {name!r}; name it in process(): {known}")
        return self._stores[name]

    def current_stream_time_ms(self) -> int:
        return self.stream_time

    def current_system_time_ms(self) -> int:
        return self._task.now_ms


class Processing(Operator):
    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings
        self.maps = ("task", *(_store_map(each) for each in settings.stores))

    def open(self, task: Task) -> None:
        super().open(task)
        self._now_ms = task.now_ms
        stores = {each.name: open_store(each, task.maps[_store_map(each)]) for each in self._settings.stores}
        self._stores = stores
        self._context = Context(self._settings, task, stores)
        stored = task.maps["task"].get(_STREAM_TIME)
        if stored is not None:
            self._context.stream_time = int(_TIME.unpack(stored)[0])
        self._processor = self._settings.supplier()
        self._processor.init(self._context)

    def process(self, row: Row) -> None:
        key = self._settings.key_serde.deserialize(row.topic, row.key, row.headers)
        value = self._settings.value_serde.deserialize(row.topic, row.value, row.headers)
        self._context.begin(row, key)
        self._processor.process(Record(key, value, row.timestamp, row.headers))
        self._context.punctuate(PunctuationType.STREAM_TIME, self._context.stream_time)

    def tick(self) -> None:
        self._context.punctuate(PunctuationType.WALL_CLOCK_TIME, self._now_ms)

    def next_tick(self) -> int | None:
        times = [each.next_ms for each in self._context.timers if _of_the_clock(each)]
        return min(times, default=None)

    def close(self) -> None:
        self._processor.close()
        task = self.state["task"]
        if self._context.stream_time != _NEVER:
            task.put(_STREAM_TIME, _TIME.pack(self._context.stream_time))
        for place, timer in enumerate(self._context.timers):
            task.put(_timer_key(place), _TIME.pack(timer.next_ms))
        for store in self._stores.values():
            if store.definition.logging:
                self._tell_changes(store)

    def _tell_changes(self, store: StateStore) -> None:
        timestamp = max(self._context.stream_time, 0)
        for key, value in store.changes().items():
            self.emit(Out(key, value, timestamp, target=self._settings.changelog(store.name)))


def uses_the_clock(settings: ProcessSettings) -> bool:
    """Whether the processor's `init` schedules a timer of the clock; it is tried with empty stores."""
    operator = Processing(settings)
    operator.open(Task(0, {name: MemoryMap() for name in operator.maps}, lambda _: None, 0))
    return operator.next_tick() is not None


def _of_the_clock(timer: Timer) -> bool:
    return timer.punctuation is PunctuationType.WALL_CLOCK_TIME and timer.next_ms != _NEVER


def _timer_key(place: int) -> bytes:
    return b"timer-%d" % place


def _store_map(store: StoreBuilder) -> str:
    return f"store-{store.name}"
