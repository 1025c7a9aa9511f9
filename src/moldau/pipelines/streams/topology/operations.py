"""What the nodes of a topology do: one class per operator, with the user's functions and nothing that runs.

A function may be a Python callable, or an expression that Spark itself computes: a `Column`, or SQL text.
Those are *native*; see `is_native`.

These are steps of a chain; operators that keep state are in `stateful`.
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
    """Whether Spark computes it: a `Column` or SQL text, not something that Python calls."""
    return function is not None and not callable(function)


def takes_key(function: Function, without_key: int) -> bool:
    """Whether a function wants the key before its other arguments, which it may leave out."""
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
    """By which names a processor may forward to an operator behind it: the operator's own, and those that
    Java has for the ends of a topic."""
    if isinstance(operation, Repartition):
        return tuple(each for each in (name, operation.filter_name, operation.sink_name) if each)
    return (name,)


class Operation:
    """What a node does."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Root(Operation):
    """Where every topology begins."""


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
    """A record goes to the first branch whose predicate holds; the list grows while branches are added."""

    predicates: list[Function] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Branch(Operation):
    """The branch at `position` of its split; that behind the last predicate takes the rest."""

    position: int | None


@dataclass(frozen=True, slots=True)
class Merge(Operation):
    """The records of all parents."""


@dataclass(frozen=True, slots=True)
class Repartition(Operation):
    """Through an internal topic, so that equal keys come together."""

    #: Without the application id in front.
    topic: str
    sink_name: str
    source_name: str
    filter_name: str | None
    key_serde: Serde | None
    value_serde: Serde | None
    partitions: int | None = None
    partitioner: Callable[[str, Any, Any, int], int] | None = None
    #: Keys and values are as those of these nodes, where no serde is said.
    keys_of: Node | None = None
    values_of: Node | None = None
    #: Who writes it in a description, if not the parents.
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
    """A table's updates as records."""
