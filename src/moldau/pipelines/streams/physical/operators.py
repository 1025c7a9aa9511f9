"""The operators that keep state, by what they do. An operator takes frames with the standard columns and
gives one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from moldau.pipelines.streams.physical import (
    aggregates,
    foreign_keys,
    processors,
    stream_joins,
    table_aggregates,
    table_joins,
)
from moldau.pipelines.streams.physical.ports import OperatorContext, Port, Result
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Operation
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    ForeignKeyLookup,
    ForeignKeySubscribe,
    GlobalTableJoin,
    Process,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableSelect,
    TableTableJoin,
)

Operator = Callable[[Node, Sequence[Port], OperatorContext], Result]

OPERATORS: Mapping[type[Operation], Operator] = {
    Aggregate: aggregates.aggregate,
    ForeignKeyJoin: foreign_keys.resolve,
    ForeignKeyLookup: foreign_keys.lookup,
    ForeignKeySubscribe: foreign_keys.subscribe,
    GlobalTableJoin: table_joins.global_table_join,
    Process: processors.process,
    StreamStreamJoin: stream_joins.stream_join,
    StreamTableJoin: table_joins.stream_table_join,
    Suppress: table_aggregates.suppress,
    TableAggregate: table_aggregates.table_aggregate,
    TableSelect: table_aggregates.table_select,
    TableTableJoin: table_joins.table_table_join,
}
