"""What operators can be given besides their functions: names, serdes, stores. The classes are Java's.

Every one can be made with keywords (`Consumed(key_serde=…, value_serde=…)`), or as in Java with `with_` (the
serdes in their order) and `as_` (a name). Serdes may be given by their short names ("string", "json").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from moldau.pipelines.streams.dsl.serdes import Serde, as_serde
from moldau.pipelines.streams.dsl.windows import Duration, milliseconds
from moldau.pipelines.streams.errors import TopologyException

#: A function of the user's, or an expression: a Spark `Column` or SQL text.
Function = Any
SerdeChoice = Serde | str | None

_MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def checked_name(name: str) -> str:
    """A name becomes part of topic names, so it must be a legal one."""
    if name in ("", ".", "..") or len(name) > _MAX_NAME_LENGTH or not _LEGAL_NAME.fullmatch(name):
        raise TopologyException(
            f"{name!r} cannot name an operator or store: use 1 to {_MAX_NAME_LENGTH} of the letters, digits, "
            "'.', '_' and '-', and neither '.' nor '..' alone"
        )
    return name


class _Parameters:
    """Checks the name and looks up serdes that are given by name."""

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
    """How a topic is read. The extractor takes the record and the highest timestamp so far, or is an
    expression."""

    key_serde: Any = None
    value_serde: Any = None
    timestamp_extractor: Function | None = None
    offset_reset: Literal["earliest", "latest"] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Produced(_WithSerdes):
    key_serde: Any = None
    value_serde: Any = None
    #: Takes topic, key, value and the number of partitions, and says which partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Grouped(_WithSerdes):
    """The name also names the repartition topic."""

    key_serde: Any = None
    value_serde: Any = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Repartitioned(_WithSerdes):
    key_serde: Any = None
    value_serde: Any = None
    number_of_partitions: int | None = None
    #: Takes topic, key, value and the number of partitions, and says which partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Materialized(_WithSerdes):
    """The store of a table. With a name it can be asked while the program runs."""

    key_serde: Any = None
    value_serde: Any = None
    name: str | None = None
    #: How long windows are kept, at least their size and grace.
    retention_ms: int | None = None
    #: Settings of the changelog topic.
    topic_config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Joined(_Parameters):
    """Of a stream with a table."""

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
    """Of two tables by a foreign key: how each of them is partitioned, where not by the hash of its keys."""

    #: Takes topic, key, None and the number of partitions, and says which partition.
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    other_partitioner: Callable[[str, Any, Any, int], int] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StreamJoined(_Parameters):
    """Of two streams."""

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
    """A branch: its name, and what becomes of it at once."""

    name: str | None = None
    #: Gives the stream that takes the branch's place; None leaves it out of the result.
    chain: Callable[[Any], Any] | None = None

    @classmethod
    def with_function(cls, chain: Callable[[Any], Any], name: str | None = None) -> Branched:
        return cls(name, chain)

    with_consumer = with_function


@dataclass(frozen=True, slots=True)
class Printed(_Parameters):
    """Where rows are printed: the workers' standard output, or a file on the worker."""

    file: str | None = None
    label: str | None = None
    name: str | None = None
    #: Makes the text of a key and a value.
    mapper: Callable[[Any, Any], str] | None = None

    @classmethod
    def to_sys_out(cls, label: str | None = None) -> Printed:
        return cls(label=label)

    @classmethod
    def to_file(cls, file: str, label: str | None = None) -> Printed:
        return cls(file, label)


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """How much may be held back in each task, and what happens when that is too little: the oldest goes on
    early, or the application stops."""

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
    """Hold updates back: until their window closes, or until they are `limit_ms` old in the stream's time."""

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
    """When a windowed aggregate says something: on every update, or when the window closes."""

    on_close: bool = False

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        return cls()

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        return cls(True)
