"""Runs a custom processor: its context, its state stores and its punctuators.

Punctuators are identified by the order in which `init` schedules them. The time at which each is due next is
stored in the task's state, together with stream time. A stream-time punctuator is called after the record
that made it due, with the current stream time; a wall-clock punctuator is called between batches. A
punctuator that has missed several intervals is called once.
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
from moldau.pipelines.streams.tasks.state import MemoryMap
from moldau.pipelines.streams.tasks.state_stores import StateStore, open_store
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

_TIME = Struct(">q")
_STREAM_TIME = b"stream-time"
_NEVER = -1


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The configuration of a processor."""

    application_id: str
    supplier: Callable[[], Processor]
    stores: tuple[StoreBuilder, ...]
    fixed_key: bool
    key_serde: Serde
    value_serde: Serde
    result_key_serde: Serde
    result_value_serde: Serde
    #: The names of the children that the processor may forward to.
    children: tuple[str, ...] = ()

    def changelog(self, store: str) -> str:
        return f"{self.application_id}-{store}-changelog"


@dataclass(slots=True)
class Punctuator:
    """A scheduled callback, due at `next_ms`; a negative time means never."""

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
        self.punctuators: list[Punctuator] = []
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
        for punctuator in self.punctuators:
            if punctuator.punctuation is punctuation:
                punctuator.run_if_due(now_ms)

    def forward(self, record: Record, child_name: str | None = None) -> None:
        if child_name is not None and child_name not in self._settings.children:
            known = ", ".join(self._settings.children) or "none"
            raise StreamsException(f"The processor has no child {child_name}; its children are {known}")
        fixed = self._settings.fixed_key and self.record_metadata is not None
        key = self._settings.result_key_serde.serialize("", self._key if fixed else record.key)
        value = self._settings.result_value_serde.serialize("", record.value)
        self._task.emit(Out(key, value, record.timestamp, record.headers, child=child_name))

    def schedule(
        self, interval_ms: int, punctuation: PunctuationType, callback: Callable[[int], None]
    ) -> Punctuator:
        if interval_ms < 1:
            raise ValueError(f"The interval of a punctuator must be at least 1 ms, not {interval_ms}")
        stored = self._task.maps["task"].get(_punctuator_key(len(self.punctuators)))
        first = 0 if punctuation is PunctuationType.STREAM_TIME else self._task.now_ms + interval_ms
        due = first if stored is None else int(_TIME.unpack(stored)[0])
        self.punctuators.append(Punctuator(interval_ms, punctuation, callback, due))
        return self.punctuators[-1]

    def get_state_store(self, name: str) -> StateStore:
        if name not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            raise KeyError(
                f"The processor is not connected to the store {name!r}, only to {known}; name it in process()"
            )
        return self._stores[name]

    def current_stream_time_ms(self) -> int:
        return self.stream_time

    def current_system_time_ms(self) -> int:
        return self._task.now_ms


class ProcessorTask(Operator):
    """Runs a custom processor, and emits the changes of its stores to their changelogs."""

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
        times = [each.next_ms for each in self._context.punctuators if _is_wall_clock(each)]
        return min(times, default=None)

    def close(self) -> None:
        self._processor.close()
        task = self.state["task"]
        if self._context.stream_time != _NEVER:
            task.put(_STREAM_TIME, _TIME.pack(self._context.stream_time))
        for number, punctuator in enumerate(self._context.punctuators):
            task.put(_punctuator_key(number), _TIME.pack(punctuator.next_ms))
        for store in self._stores.values():
            if store.definition.logging:
                self._log_changes(store)

    def _log_changes(self, store: StateStore) -> None:
        timestamp = max(self._context.stream_time, 0)
        for key, value in store.changes().items():
            self.emit(Out(key, value, timestamp, target=self._settings.changelog(store.name)))


def uses_wall_clock(settings: ProcessSettings) -> bool:
    """Whether `init` schedules a wall-clock punctuator, found by calling it with empty stores."""
    operator = ProcessorTask(settings)
    operator.open(Task(0, {name: MemoryMap() for name in operator.maps}, lambda _: None, 0))
    return operator.next_tick() is not None


def _is_wall_clock(punctuator: Punctuator) -> bool:
    return punctuator.punctuation is PunctuationType.WALL_CLOCK_TIME and punctuator.next_ms != _NEVER


def _punctuator_key(number: int) -> bytes:
    return b"timer-%d" % number


def _store_map(store: StoreBuilder) -> str:
    return f"store-{store.name}"
