"""The stateless operations of a topology: one class per operator, with the user's functions but no behaviour.

A function is a Python callable, or a *native* expression that Spark computes: a `Column` or SQL text
(`is_native`).

Stateless operations are the steps of chains; stateful operations are in `stateful`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.parameters import Consumed, Function, Printed
from moldau.pipelines.streams.dsl.serdes import Serde

if TYPE_CHECKING:
    from moldau.pipelines.streams.topology.graph import Node, TableStore


def is_native(function: Function) -> bool:
    """Whether Spark computes a function: a `Column` or SQL text, not a Python callable."""
    return function is not None and not callable(function)


def takes_key(function: Function, without_key: int) -> bool:
    """Whether a function takes the key in addition to its other `without_key` arguments."""
    if not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    required = [
        each
        for each in parameters
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) == without_key + 1


def child_names(name: str, operation: Operation) -> tuple[str, ...]:
    """Return the names by which a processor may forward to a child: its own, and those of the sink and the
    filter that Java adds before a repartition topic."""
    if isinstance(operation, Repartition):
        return tuple(each for each in (name, operation.filter_name, operation.sink_name) if each)
    return (name,)


class Operation:
    """The operation of a node."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Root(Operation):
    """The root of the graph, the parent of all sources."""


@dataclass(frozen=True, slots=True)
class Source(Operation):
    topics: tuple[str, ...]
    pattern: str | None
    consumed: Consumed


@dataclass(frozen=True, slots=True)
class TableSource(Operation):
    topic: str
    source_name: str
    consumed: Consumed
    store: TableStore
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class Filter(Operation):
    predicate: Function
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SelectKey(Operation):
    mapper: Function


@dataclass(frozen=True, slots=True)
class Map(Operation):
    mapper: Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class MapValues(Operation):
    mapper: Function
    with_key: bool


@dataclass(frozen=True, slots=True)
class FlatMap(Operation):
    mapper: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class FlatMapValues(Operation):
    mapper: Callable[..., Any]
    with_key: bool


@dataclass(frozen=True, slots=True)
class Peek(Operation):
    action: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class ForEach(Operation):
    action: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Print(Operation):
    printed: Printed
    label: str


@dataclass(frozen=True, slots=True)
class Split(Operation):
    """Sends a record to the first branch whose predicate holds. Adding a branch appends to the list."""

    predicates: list[Function] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Branch(Operation):
    """The branch at `position` of its split; None is the default branch."""

    position: int | None


@dataclass(frozen=True, slots=True)
class Merge(Operation):
    """The records of all parents."""


@dataclass(frozen=True, slots=True)
class Repartition(Operation):
    """Writes records to a repartition topic, so that equal keys are in one partition."""

    #: Without the prefix of the application id.
    topic: str
    sink_name: str
    source_name: str
    filter_name: str | None
    key_serde: Serde | None
    value_serde: Serde | None
    partitions: int | None = None
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    #: The nodes whose serdes are used where none is given.
    keys_of: Node | None = None
    values_of: Node | None = None
    #: The writers in a description, if they are not the parents.
    written_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sink(Operation):
    topic: str | None
    extractor: Callable[[Any, Any, Any], str] | None
    key_serde: Serde | None
    value_serde: Serde | None
    partitioner: Callable[[str, Any, Any, int], int] | None = None


@dataclass(frozen=True, slots=True)
class ToTable(Operation):
    store: TableStore


@dataclass(frozen=True, slots=True)
class TableFilter(Operation):
    predicate: Function
    negated: bool
    store: TableStore | None


@dataclass(frozen=True, slots=True)
class TableMapValues(Operation):
    mapper: Function
    with_key: bool
    store: TableStore | None


@dataclass(frozen=True, slots=True)
class ToStream(Operation):
    """Emits the updates of a table as records."""
