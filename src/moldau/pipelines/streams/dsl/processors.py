"""A user's own processor: state and timers of his own, in the words of Kafka Streams.

    class Summing(Processor):
        def init(self, context):
            super().init(context)
            self.sums = context.get_state_store("sums")
            context.schedule(1000, PunctuationType.STREAM_TIME, self.tell)

        def process(self, record):
            self.sums.put(record.key, (self.sums.get(record.key) or 0) + record.value)

        def tell(self, time_ms):
            for key, value in self.sums.all():
                self.context.forward(Record(key, value, time_ms))

A task is one partition of the input, as in Kafka Streams: its stores are seen by all its keys. A processor is
made anew for every batch of records, so what must last belongs into a store, and timers are scheduled in
`init`, always in the same order; when each is due next is remembered between batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from moldau.client.records import Headers


class PunctuationType(Enum):
    """What makes time pass for a timer: the records' timestamps, or the clock on the wall."""

    STREAM_TIME = "stream"
    WALL_CLOCK_TIME = "wall clock"


@dataclass(frozen=True, slots=True)
class Record:
    """A record inside a topology: objects, not bytes. Changed copies are made by `with_…`."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record:
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record:
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Record:
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Record:
        return replace(self, headers=headers)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where the record that is being processed comes from."""

    topic: str
    partition: int
    offset: int


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class ProcessorContext(Protocol):
    """What a processor may ask and do."""

    @property
    def application_id(self) -> str: ...

    @property
    def partition(self) -> int:
        """The partition that this task works on."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """None inside a timer."""

    @property
    def timestamp(self) -> int:
        """Of the record, or the time of the timer that is running."""

    @property
    def headers(self) -> Headers: ...

    def forward(self, record: Record, child_name: str | None = None) -> None:
        """To all operators behind this one, or to the one with that name."""

    def schedule(
        self, interval_ms: int, punctuation: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Stream time is aligned to zero, due with the first record; the clock one interval from now."""

    def get_state_store(self, name: str) -> Any: ...

    def current_stream_time_ms(self) -> int: ...

    def current_system_time_ms(self) -> int: ...


class Processor(ABC):
    """Subclass it; `context` is there from `init` on."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    @abstractmethod
    def process(self, record: Record) -> None: ...

    def close(self) -> None:
        """Called when the batch is done."""
        return


class FixedKeyProcessor(Processor):
    """For `process_values`: what it forwards keeps the key of the record it was given."""


class ValueTransformerWithKey(ABC):
    """For `KTable.transform_values`: gives the new value of a row, or None to delete it. A row that is
    deleted has the value None."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    @abstractmethod
    def transform(self, key: Any, value: Any) -> Any: ...

    def close(self) -> None:
        """Called when the batch is done."""
        return
