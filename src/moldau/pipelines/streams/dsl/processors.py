"""The Processor API: custom processors with state stores and punctuators.

    class Summing(Processor):
        def init(self, context):
            super().init(context)
            self.sums = context.get_state_store("sums")
            context.schedule(1000, PunctuationType.STREAM_TIME, self.emit)

        def process(self, record):
            self.sums.put(record.key, (self.sums.get(record.key) or 0) + record.value)

        def emit(self, time_ms):
            for key, value in self.sums.all():
                self.context.forward(Record(key, value, time_ms))

As in Kafka Streams, a task processes one partition of the input, and all keys of the partition share its
stores. Unlike in Kafka Streams, a processor is created for every batch: keep state in a store, and schedule
punctuators in `init`, always in the same order. The next time of each punctuator is stored between batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from moldau.client.records import Headers


class PunctuationType(Enum):
    """The time that a punctuator follows: the timestamps of records, or the wall clock."""

    STREAM_TIME = "stream"
    WALL_CLOCK_TIME = "wall clock"


@dataclass(frozen=True, slots=True)
class Record:
    """A deserialized record inside a topology. `with_…` return changed copies."""

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
    """The topic, partition and offset of the record being processed."""

    topic: str
    partition: int
    offset: int


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class ProcessorContext(Protocol):
    """The interface between a processor and its task."""

    @property
    def application_id(self) -> str: ...

    @property
    def partition(self) -> int:
        """The partition that this task processes."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """None inside a punctuator."""

    @property
    def timestamp(self) -> int:
        """The timestamp of the record, or the time of the punctuator being called."""

    @property
    def headers(self) -> Headers: ...

    def forward(self, record: Record, child_name: str | None = None) -> None:
        """Forward a record to all child nodes, or to the child with the given name."""

    def schedule(
        self, interval_ms: int, punctuation: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Schedule a punctuator. Stream-time intervals are aligned to zero, and the first one is due with the
        first record; the first wall-clock interval ends `interval_ms` from now."""

    def get_state_store(self, name: str) -> Any: ...

    def current_stream_time_ms(self) -> int: ...

    def current_system_time_ms(self) -> int: ...


class Processor(ABC):
    """Base class of processors. `context` is set by `init`."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    @abstractmethod
    def process(self, record: Record) -> None: ...

    def close(self) -> None:
        """Called at the end of the batch."""
        return


class FixedKeyProcessor(Processor):
    """A processor for `process_values`: forwarded records keep the key of the record being processed."""


class ValueTransformerWithKey(ABC):
    """A transformer for `KTable.transform_values`: returns the new value of a row, or None to delete it. A
    deleted row has the value None."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    @abstractmethod
    def transform(self, key: Any, value: Any) -> Any: ...

    def close(self) -> None:
        """Called at the end of the batch."""
        return


@dataclass(frozen=True, slots=True)
class TransformerSupplier:
    """Supplies processors that run the transformers of another supplier."""

    supplier: Callable[[], ValueTransformerWithKey]

    def __call__(self) -> FixedKeyProcessor:
        return _TransformerProcessor(self.supplier())


class _TransformerProcessor(FixedKeyProcessor):
    """Forwards every record with the value that the transformer returns."""

    def __init__(self, transformer: ValueTransformerWithKey) -> None:
        self._transformer = transformer

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._transformer.init(context)

    def process(self, record: Record) -> None:
        if record.key is not None:
            value = self._transformer.transform(record.key, record.value)
            self.context.forward(record.with_value(value))

    def close(self) -> None:
        self._transformer.close()
