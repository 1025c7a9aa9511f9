"""What the nodes of a topology do: one class per operator, with the user's functions and nothing that runs.

A function may be a Python callable, or an expression that Spark itself computes: a `Column`, or SQL text.
Those are *native*; see `is_native`.

`STATEFUL` operators need what came before: a stage has at most one of them. Everything else is a step of a
chain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from moldau.pipelines.streams.parameters import Consumed, Function, Printed
from moldau.pipelines.streams.serdes import Serde
from moldau.pipelines.streams.windows import AggregationWindows, JoinWindows

if TYPE_CHECKING:
    from moldau.pipelines.streams.graph import Node, TableStore


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


AggregateKind = Literal["count", "reduce", "aggregate", "native"]


@dataclass(frozen=True, slots=True)
class Aggregate(Operation):
    """A table of one value for each key, or key and window."""

    kind: AggregateKind
    store: TableStore
    windows: AggregationWindows | None = None
    initializer: Callable[[], Any] | None = None
    #: key, value, aggregate so far; of a reduce: aggregate so far, value.
    aggregator: Callable[..., Any] | None = None
    #: Of sessions: key and two aggregates.
    merger: Callable[[Any, Any, Any], Any] | None = None
    #: Of native ones: Spark's aggregate expression, or several by name.
    expression: Function | None = None
    on_close: bool = False


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


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """Until the window closes, or for a time."""

    limit_ms: int | None
    store_name: str


@dataclass(frozen=True, slots=True)
class TableSelect(Operation):
    """New keys and values for a table's rows, old ones taken back: what KTable.group_by begins with."""

    selector: Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class TableAggregate(Operation):
    kind: AggregateKind
    store: TableStore
    initializer: Callable[[], Any] | None
    #: key, value, aggregate so far; of a reduce: aggregate so far, value.
    adder: Callable[..., Any]
    subtractor: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class JoinWindowed(Operation):
    """Keeps one side of a stream-stream join. Only a name in the description: Spark's join has its own
    state."""

    processor: str
    store_name: str


JoinKind = Literal["inner", "left", "outer"]


@dataclass(frozen=True, slots=True)
class StreamStreamJoin(Operation):
    kind: JoinKind
    joiner: Function
    with_key: bool
    windows: JoinWindows
    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    this_store: str
    other_store: str
    outer_store: str | None


@dataclass(frozen=True, slots=True)
class StreamTableJoin(Operation):
    kind: JoinKind
    joiner: Callable[..., Any]
    with_key: bool
    table_stores: Sequence[str]


@dataclass(frozen=True, slots=True)
class GlobalTableJoin(Operation):
    kind: JoinKind
    key_selector: Callable[[Any, Any], Any]
    joiner: Callable[..., Any]
    with_key: bool


@dataclass(frozen=True, slots=True)
class TableTableJoin(Operation):
    kind: JoinKind
    joiner: Callable[[Any, Any], Any]
    this_name: str
    other_name: str
    this_join: str
    other_join: str
    this_stores: Sequence[str]
    other_stores: Sequence[str]
    store: TableStore | None


@dataclass(frozen=True, slots=True)
class Process(Operation):
    """A processor of the user's, with stores and timers; `fixed_key` leaves the keys alone."""

    supplier: Callable[[], Any]
    store_names: tuple[str, ...]
    fixed_key: bool


#: These keep state. Of them Spark computes the ones natively that `physical` says.
STATEFUL = (
    Aggregate,
    Suppress,
    TableSelect,
    TableAggregate,
    StreamStreamJoin,
    StreamTableJoin,
    GlobalTableJoin,
    TableTableJoin,
    Process,
)


def is_stateful(node: Node) -> bool:
    return isinstance(node.operation, STATEFUL)
