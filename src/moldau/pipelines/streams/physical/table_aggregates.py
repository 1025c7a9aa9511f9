"""Tables grouped anew, their aggregates, and updates held back for a time: all of them tasks."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks.grouped_tables import (
    AggregateFunctions,
    AggregateSerdes,
    Regroup,
    RegroupSerdes,
)
from moldau.pipelines.streams.tasks.grouped_tables import TableAggregate as AggregateTask
from moldau.pipelines.streams.tasks.suppression import Suppression
from moldau.pipelines.streams.tasks.task import Operator
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import Suppress, TableAggregate, TableSelect


def table_select(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableSelect):
        raise TypeError(f"{node.name} does not group a table")
    (port,) = ports
    serdes = RegroupSerdes(port.key_serde, port.value_serde, context.key_serde, context.value_serde)
    return _task(node, port, Regroup(operation.selector, serdes))


def table_aggregate(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableAggregate):
        raise TypeError(f"{node.name} does not aggregate a table")
    (port,) = ports
    if operation.initializer is None:
        functions = AggregateFunctions.of_reducers(operation.adder, operation.subtractor)
    else:
        functions = AggregateFunctions(operation.initializer, operation.adder, operation.subtractor)
    serdes = AggregateSerdes(port.key_serde, port.value_serde, context.value_serde)
    return _task(node, port, AggregateTask(functions, serdes))


def suppress(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, Suppress) or operation.limit_ms is None:
        raise TypeError(f"{node.name} does not hold updates back for a time")
    (port,) = ports
    return _task(node, port, Suppression(operation.limit_ms, operation.buffer))


def _task(node: Node, port: Port, operator: Operator) -> Result:
    return Result(run_tasks([port.frame], operator, name=node.name).select(*COLUMNS), "append")
