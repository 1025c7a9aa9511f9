"""The physical operators of stateful operations, listed in the table `OPERATORS`.

An operator takes frames with the standard columns (`ports.COLUMNS`) and returns one. Aggregates and the joins
that Spark computes itself have modules of their own; the operators here run as tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.physical.aggregates import aggregate
from moldau.pipelines.streams.physical.joins import (
    global_table_join,
    join_serdes,
    joiner_with_key,
    stream_stream_join,
)
from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks import foreign_keys, grouped_tables, table_joins
from moldau.pipelines.streams.tasks.foreign_key_results import Resolve
from moldau.pipelines.streams.tasks.processors import ProcessorTask, ProcessSettings, uses_wall_clock
from moldau.pipelines.streams.tasks.suppression import Suppression
from moldau.pipelines.streams.tasks.task import Operator
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
    forwarding_names,
)


def _stream_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, StreamTableJoin):
        raise TypeError(f"{node.name} is not a stream-table join")
    joiner = joiner_with_key(operation.joiner, with_key=operation.with_key, name=node.name)
    lookup = table_joins.Lookup(joiner, join_serdes(ports, context), left=operation.kind == "left")
    return _task_result(node, ports, lookup)


def _table_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableTableJoin):
        raise TypeError(f"{node.name} is not a table-table join")
    joiner = joiner_with_key(operation.joiner, with_key=False, name=node.name)
    join = table_joins.TableJoin(operation.kind, joiner, join_serdes(ports, context))
    return _task_result(node, ports, join)


def _foreign_key_subscribe(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, ForeignKeySubscribe):
        raise TypeError(f"{node.name} does not subscribe to foreign keys")
    (port,) = ports
    extractor = operation.extractor if operation.with_key else _ValueExtractor(operation.extractor)
    serdes = foreign_keys.SubscribeSerdes(port.key_serde, port.value_serde, context.key_serde)
    return _task_result(node, ports, foreign_keys.Subscribe(extractor, serdes, left=operation.left))


@dataclass(frozen=True, slots=True)
class _ValueExtractor:
    """A foreign-key extractor that takes only the value."""

    extractor: Callable[[Any], Any]

    def __call__(self, key: object, value: object) -> object:
        return self.extractor(value)


def _foreign_key_lookup(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    if not isinstance(node.operation, ForeignKeyLookup):
        raise TypeError(f"{node.name} does not respond to subscriptions")
    return _task_result(node, ports, foreign_keys.Lookup())


def _foreign_key_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, ForeignKeyJoin):
        raise TypeError(f"{node.name} is not a foreign-key join")
    joiner = joiner_with_key(operation.joiner, with_key=False, name=node.name)
    return _task_result(node, ports, Resolve(joiner, join_serdes(ports, context), left=operation.left))


def _table_select(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableSelect):
        raise TypeError(f"{node.name} does not group a table")
    (port,) = ports
    serdes = grouped_tables.RegroupSerdes(
        port.key_serde, port.value_serde, context.key_serde, context.value_serde
    )
    return _task_result(node, ports, grouped_tables.Regroup(operation.selector, serdes))


def _table_aggregate(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableAggregate):
        raise TypeError(f"{node.name} does not aggregate a table")
    (port,) = ports
    functions = grouped_tables.AggregateFunctions.of(operation)
    serdes = grouped_tables.AggregateSerdes(port.key_serde, port.value_serde, context.value_serde)
    return _task_result(node, ports, grouped_tables.TableAggregation(functions, serdes))


def _suppress(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, Suppress) or operation.limit_ms is None:
        raise TypeError(f"{node.name} does not suppress updates for a time")
    return _task_result(node, ports, Suppression(operation.limit_ms, operation.buffer))


def _process(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, Process):
        raise TypeError(f"{node.name} is not a processor")
    (port,) = ports
    settings = ProcessSettings(
        context.settings.application_id,
        operation.supplier,
        tuple(_store(node, context, name) for name in operation.store_names),
        operation.fixed_key,
        port.key_serde,
        port.value_serde,
        context.key_serde,
        context.value_serde,
        forwarding_names(node),
    )
    wall_clock = uses_wall_clock(settings) and not context.bounded
    frame = run_tasks([port.frame], ProcessorTask(settings), name=node.name, wall_clock=wall_clock)
    return Result(frame, "append", side_outputs=True)


def _store(node: Node, context: OperatorContext, name: str) -> StoreBuilder:
    store = context.stores.get(name)
    if not isinstance(store, StoreBuilder):
        raise TopologyException(f"{node.name} uses the state store {name}: add it with add_state_store")
    return store


def _task_result(node: Node, ports: Sequence[Port], operator: Operator) -> Result:
    frames = [port.frame for port in ports]
    return Result(run_tasks(frames, operator, name=node.name).select(*COLUMNS), "append")


PhysicalOperator = Callable[[Node, Sequence[Port], OperatorContext], Result]

OPERATORS: Mapping[type[Operation], PhysicalOperator] = {
    Aggregate: aggregate,
    ForeignKeyJoin: _foreign_key_join,
    ForeignKeyLookup: _foreign_key_lookup,
    ForeignKeySubscribe: _foreign_key_subscribe,
    GlobalTableJoin: global_table_join,
    Process: _process,
    StreamStreamJoin: stream_stream_join,
    StreamTableJoin: _stream_table_join,
    Suppress: _suppress,
    TableAggregate: _table_aggregate,
    TableSelect: _table_select,
    TableTableJoin: _table_table_join,
}
