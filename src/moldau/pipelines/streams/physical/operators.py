"""The operators that keep state, by what they do. An operator takes frames with the standard columns and
gives one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from moldau.pipelines.streams.graph import Node
from moldau.pipelines.streams.operations import (
    Aggregate,
    GlobalTableJoin,
    Operation,
    Process,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableSelect,
    TableTableJoin,
)
from moldau.pipelines.streams.physical import (
    aggregates,
    processors,
    stream_joins,
    table_aggregates,
    table_joins,
)
from moldau.pipelines.streams.physical.ports import OperatorContext, Port, Result

Operator = Callable[[Node, Sequence[Port], OperatorContext], Result]

OPERATORS: Mapping[type[Operation], Operator] = {
    Aggregate: aggregates.aggregate,
    GlobalTableJoin: table_joins.global_table_join,
    Process: processors.process,
    StreamStreamJoin: stream_joins.stream_join,
    StreamTableJoin: table_joins.stream_table_join,
    Suppress: table_aggregates.suppress,
    TableAggregate: table_aggregates.table_aggregate,
    TableSelect: table_aggregates.table_select,
    TableTableJoin: table_joins.table_table_join,
}
