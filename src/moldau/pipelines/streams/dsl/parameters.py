"""The configuration objects of operators: names, serdes, stores. The classes are those of Kafka Streams.

Create them with keywords (`Consumed(key_serde=…, value_serde=…)`), or as in Java with `with_` (the serdes in
order) and `as_` (a name). Serdes may be given by their short names ("string", "json").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from moldau.pipelines.streams.dsl.serdes import Serde, as_serde
from moldau.pipelines.streams.dsl.windows import Duration, milliseconds
from moldau.pipelines.streams.errors import TopologyException

#: A Python function, or an expression: a Spark `Column` or SQL text.
Function = Any
SerdeChoice = Serde | str | None

_MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def checked_name(name: str) -> str:
    """Return the name if it is legal in topic names, of which it becomes a part."""
    if name in ("", ".", "..") or len(name) > _MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise TopologyException(
            f"{name!r} is not a valid name of an operator or store: use 1 to {_MAX_NAME_LENGTH} ASCII "
            "letters, digits, '.', '_' or '-', but not '.' or '..' alone"
        )
    return name


def given_name(name: Named | str | None) -> str | None:
    return name.name if isinstance(name, Named) else name


class _Parameters:
    """Checks the name, and replaces the short names of serdes by serdes."""

    __slots__ = ()

    def __post_init__(self) -> None:
        name = getattr(self, "name", None)
        if name is not None:
            checked_name(name)
        for attribute in ("key_serde", "value_serde", "other_value_serde"):
            if hasattr(self, attribute):
                object.__setattr__(self, attribute, as_serde(getattr(self, attribute)))

    @classmethod
    def as_(cls, name: str) -> Self:
        return cls(name=name)  # type: ignore[call-arg]


@dataclass(frozen=True, slots=True)
class Named(_Parameters):
    name: str | None = None


class _WithSerdes(_Parameters):
    __slots__ = ()

    @classmethod
    def with_(cls, key_serde: SerdeChoice = None, value_serde: SerdeChoice = None, **others: Any) -> Self:
        return cls(key_serde=key_serde, value_serde=value_serde, **others)  # type: ignore[call-arg]


@dataclass(frozen=True, slots=True)
class Consumed(_WithSerdes):
    """Options for reading a topic. The timestamp extractor is an expression, or takes the record and the
    highest timestamp so far."""

    key_serde: Any = None
    value_serde: Any = None
    timestamp_extractor: Function | None = None
    offset_reset: Literal["earliest", "latest"] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Produced(_WithSerdes):
    """Options for writing a topic."""

    key_serde: Any = None
    value_serde: Any = None
    #: Takes topic, key, value and the number of partitions, and returns the partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Grouped(_WithSerdes):
    """Options for grouping records. The name is also that of the repartition topic."""

    key_serde: Any = None
    value_serde: Any = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Repartitioned(_WithSerdes):
    """Options for writing and reading a repartition topic."""

    key_serde: Any = None
    value_serde: Any = None
    number_of_partitions: int | None = None
    #: Takes topic, key, value and the number of partitions, and returns the partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Materialized(_WithSerdes):
    """The state store of a table. A named store can be queried (`KafkaStreams.store`)."""

    key_serde: Any = None
    value_serde: Any = None
    name: str | None = None
    #: Retention of windows in the changelog; by default their size and grace period.
    retention_ms: int | None = None
    #: Configs of the changelog topic.
    topic_config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Joined(_Parameters):
    """Options for joining a stream with a table."""

    key_serde: Any = None
    value_serde: Any = None
    other_value_serde: Any = None
    name: str | None = None

    @classmethod
    def with_(
        cls,
        key_serde: SerdeChoice = None,
        value_serde: SerdeChoice = None,
        other_value_serde: SerdeChoice = None,
        **others: Any,
    ) -> Self:
        return cls(key_serde, value_serde, other_value_serde, **others)


@dataclass(frozen=True, slots=True)
class TableJoined(_Parameters):
    """Options for joining two tables by a foreign key: their partitioners, unless they hash the key."""

    #: Takes topic, key, None and the number of partitions, and returns the partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    other_partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StreamJoined(_Parameters):
    """Options for joining two streams."""

    key_serde: Any = None
    value_serde: Any = None
    other_value_serde: Any = None
    name: str | None = None
    store_name: str | None = None

    @classmethod
    def with_(
        cls,
        key_serde: SerdeChoice = None,
        value_serde: SerdeChoice = None,
        other_value_serde: SerdeChoice = None,
        **others: Any,
    ) -> Self:
        return cls(key_serde, value_serde, other_value_serde, **others)


@dataclass(frozen=True, slots=True)
class Branched(_Parameters):
    """A branch: its name, and a function to apply to it."""

    name: str | None = None
    #: Returns the stream that replaces the branch in the result; None omits the branch.
    chain: Callable[[Any], Any] | None = None

    @classmethod
    def with_function(cls, chain: Callable[[Any], Any], name: str | None = None) -> Branched:
        return cls(name, chain)

    with_consumer = with_function


@dataclass(frozen=True, slots=True)
class Printed(_Parameters):
    """The destination of printed records: standard output of the Spark workers, or a file on each worker."""

    file: str | None = None
    label: str | None = None
    name: str | None = None
    #: Formats a key and a value.
    mapper: Callable[[Any, Any], str] | None = None

    @classmethod
    def to_sys_out(cls, label: str | None = None) -> Printed:
        return cls(label=label)

    @classmethod
    def to_file(cls, file: str, label: str | None = None) -> Printed:
        return cls(file, label)


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The limits of the suppression buffer of each task. A full buffer emits its oldest record early, or
    shuts the application down."""

    records: int | None = None
    size_bytes: int | None = None
    shuts_down: bool = False

    @classmethod
    def unbounded(cls) -> BufferConfig:
        return cls()

    @classmethod
    def max_records(cls, limit: int) -> BufferConfig:
        return cls(records=limit)

    @classmethod
    def max_bytes(cls, limit: int) -> BufferConfig:
        return cls(size_bytes=limit)

    def with_max_records(self, limit: int) -> BufferConfig:
        return replace(self, records=limit)

    def with_max_bytes(self, limit: int) -> BufferConfig:
        return replace(self, size_bytes=limit)

    def shut_down_when_full(self) -> BufferConfig:
        return replace(self, shuts_down=True)

    def emit_early_when_full(self) -> BufferConfig:
        return replace(self, shuts_down=False)


@dataclass(frozen=True, slots=True)
class Suppressed(_Parameters):
    """Buffer updates until their window closes, or until stream time has advanced by `limit_ms`."""

    limit_ms: int | None = None
    name: str | None = None
    buffer: BufferConfig = field(default_factory=BufferConfig)

    @classmethod
    def until_window_closes(cls, name: str | None = None) -> Suppressed:
        return cls(None, name)

    @classmethod
    def until_time_limit(
        cls, limit: Duration, name: str | None = None, buffer: BufferConfig | None = None
    ) -> Suppressed:
        return cls(milliseconds(limit, "limit"), name, buffer or BufferConfig())


@dataclass(frozen=True, slots=True)
class EmitStrategy:
    """The emission of a windowed aggregate's results: on every update, or when the window closes."""

    on_close: bool = False

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        return cls()

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        return cls(True)
