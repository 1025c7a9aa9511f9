"""The operators that keep state: one class each, with the user's functions and nothing that runs.

`STATEFUL` operators need what came before: a stage has at most one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from moldau.pipelines.streams.dsl.parameters import BufferConfig, Function
from moldau.pipelines.streams.dsl.windows import AggregationWindows, JoinWindows
from moldau.pipelines.streams.topology.operations import Operation, child_names

if TYPE_CHECKING:
    from moldau.pipelines.streams.topology.graph import Node, TableStore

AggregateKind = Literal["count", "reduce", "aggregate", "native", "cogroup"]


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
    #: Of a cogroup: for each input its aggregator, and the name of Java's processor.
    aggregators: tuple[Callable[[Any, Any, Any], Any], ...] = ()
    processors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """Until the window closes, or for a time."""

    limit_ms: int | None
    store_name: str
    buffer: BufferConfig = field(default_factory=BufferConfig)


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
class ForeignKeySubscribe(Operation):
    """Says which key of another table each row of a table looks for; see `foreign_keys`."""

    extractor: Callable[..., Any]
    with_key: bool
    left: bool


@dataclass(frozen=True, slots=True)
class ForeignKeyLookup(Operation):
    """Answers subscriptions, and tells subscribers of changed rows; with the names of Java's processors."""

    receive: str
    changed: str
    store_name: str
    table_name: str
    table_stores: Sequence[str]


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin(Operation):
    """Makes the result of a row and the response to it."""

    joiner: Callable[[Any, Any], Any]
    left: bool
    resolver: str
    table_stores: Sequence[str]
    store: TableStore


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
    ForeignKeySubscribe,
    ForeignKeyLookup,
    ForeignKeyJoin,
    Process,
)


def is_kept(node: Node) -> bool:
    """Whether a node's table has a changelog. What a suppress lets through has none, and the result of a join
    by a foreign key only if somebody wants the table."""
    if node.store is None or isinstance(node.operation, Suppress):
        return False
    return node.store.materialized or not isinstance(node.operation, ForeignKeyJoin)


def is_stateful(node: Node) -> bool:
    return isinstance(node.operation, STATEFUL)


def input_name(node: Node, number: int) -> str:
    """By which name a processor may forward to an operator of which it is that input: joins of streams and
    cogroups have in Java a processor of its own for each."""
    operation = node.operation
    if isinstance(operation, StreamStreamJoin):
        return (operation.this_windowed, operation.other_windowed)[number]
    if isinstance(operation, Aggregate) and operation.processors:
        return operation.processors[number]
    return node.name


def forwarding_names(node: Node) -> tuple[str, ...]:
    """The names that a processor may forward to."""
    names: list[str] = []
    for child in node.children:
        if is_stateful(child):
            names += [input_name(child, number) for number, port in enumerate(child.ports) if port is node]
        elif not isinstance(child.operation, JoinWindowed):
            names += child_names(child.name, child.operation)
    return tuple(names)
