"""The stateful operations of a topology: one class per operator, with the user's functions but no behaviour.

A stage has at most one stateful operation (`STATEFUL`).
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
    """A table with one aggregate for each key, or for each key and window."""

    kind: AggregateKind
    store: TableStore
    windows: AggregationWindows | None = None
    initializer: Callable[[], Any] | None = None
    #: Takes key, value and current aggregate; for a reduce, current aggregate and value.
    aggregator: Callable[..., Any] | None = None
    #: For sessions: takes key and two aggregates.
    merger: Callable[[Any, Any, Any], Any] | None = None
    #: For native aggregates: the Spark expression.
    expression: Function | None = None
    on_close: bool = False
    #: For a cogroup: the aggregator of each input, and the name of its processor in Java.
    aggregators: tuple[Callable[[Any, Any, Any], Any], ...] = ()
    processors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """Buffers updates until the window closes (`limit_ms` is None), or for a time."""

    limit_ms: int | None
    store_name: str
    buffer: BufferConfig = field(default_factory=BufferConfig)


@dataclass(frozen=True, slots=True)
class TableSelect(Operation):
    """Emits a table's updates with new keys and values, together with the old values: the start of
    `KTable.group_by`."""

    selector: Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class TableAggregate(Operation):
    kind: AggregateKind
    store: TableStore
    initializer: Callable[[], Any] | None
    #: Takes key, value and current aggregate; for a reduce, current aggregate and value.
    adder: Callable[..., Any]
    subtractor: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class JoinWindowed(Operation):
    """The processor that stores one side of a stream-stream join. It appears only in descriptions, because
    Spark's join has its own state."""

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
    """Emits a subscription to the foreign key of each row; see `dsl.table_joins`."""

    extractor: Callable[..., Any]
    with_key: bool
    left: bool


@dataclass(frozen=True, slots=True)
class ForeignKeyLookup(Operation):
    """Emits responses to new subscriptions, and to the subscribers of changed rows. The names are those of
    Java's processors."""

    receive: str
    changed: str
    store_name: str
    table_name: str
    table_stores: Sequence[str]


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin(Operation):
    """Joins each row with the response to its subscription."""

    joiner: Callable[[Any, Any], Any]
    left: bool
    resolver: str
    table_stores: Sequence[str]
    store: TableStore


@dataclass(frozen=True, slots=True)
class Process(Operation):
    """A custom processor with stores and punctuators; with `fixed_key` it cannot change keys."""

    supplier: Callable[[], Any]
    store_names: tuple[str, ...]
    fixed_key: bool


#: The stateful operations; `physical` decides which of them Spark computes natively.
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
    """Whether a node's table has a changelog. The result of `suppress` has none, that of a foreign-key join
    only if it is materialized."""
    if node.store is None or isinstance(node.operation, Suppress):
        return False
    return node.store.materialized or not isinstance(node.operation, ForeignKeyJoin)


def is_stateful(node: Node) -> bool:
    return isinstance(node.operation, STATEFUL)


def input_name(node: Node, number: int) -> str:
    """Return the name by which a processor may forward to the given input of an operator: in Java,
    stream-stream joins and cogroups have a processor for each input."""
    operation = node.operation
    if isinstance(operation, StreamStreamJoin):
        return (operation.this_windowed, operation.other_windowed)[number]
    if isinstance(operation, Aggregate) and operation.processors:
        return operation.processors[number]
    return node.name


def forwarding_names(node: Node) -> tuple[str, ...]:
    """Return the names of the children that a processor may forward to."""
    names: list[str] = []
    for child in node.children:
        if is_stateful(child):
            names += [input_name(child, number) for number, port in enumerate(child.ports) if port is node]
        elif not isinstance(child.operation, JoinWindowed):
            names += child_names(child.name, child.operation)
    return tuple(names)
