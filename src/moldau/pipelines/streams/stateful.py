"""The operators that keep state: one class each, with the user's functions and nothing that runs.

`STATEFUL` operators need what came before: a stage has at most one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from moldau.pipelines.streams.operations import Operation
from moldau.pipelines.streams.parameters import Function
from moldau.pipelines.streams.windows import AggregationWindows, JoinWindows

if TYPE_CHECKING:
    from moldau.pipelines.streams.graph import Node, TableStore

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
