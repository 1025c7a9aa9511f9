"""Joins of tables by a foreign key: three operators with two topics between them, all of them tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.stream_joins import keyed
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks.foreign_key_results import Resolve
from moldau.pipelines.streams.tasks.foreign_keys import Lookup, Subscribe, SubscribeSerdes
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes
from moldau.pipelines.streams.tasks.task import Operator
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import ForeignKeyJoin, ForeignKeyLookup, ForeignKeySubscribe


def subscribe(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, ForeignKeySubscribe):
        raise TypeError(f"{node.name} does not subscribe at foreign keys")
    (port,) = ports
    extractor = operation.extractor if operation.with_key else _OfValue(operation.extractor)
    serdes = SubscribeSerdes(port.key_serde, port.value_serde, context.key_serde)
    return _task(node, ports, Subscribe(extractor, serdes, left=operation.left))


def lookup(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    if not isinstance(node.operation, ForeignKeyLookup):
        raise TypeError(f"{node.name} does not answer subscriptions")
    return _task(node, ports, Lookup())


def resolve(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, ForeignKeyJoin):
        raise TypeError(f"{node.name} is not a join by a foreign key")
    table, responses = ports
    serdes = JoinSerdes(table.key_serde, table.value_serde, responses.value_serde, context.value_serde)
    joiner = keyed(operation.joiner, with_key=False, name=node.name)
    return _task(node, ports, Resolve(joiner, serdes, left=operation.left))


@dataclass(frozen=True, slots=True)
class _OfValue:
    extractor: Callable[[Any], Any]

    def __call__(self, key: object, value: object) -> object:
        return self.extractor(value)


def _task(node: Node, ports: Sequence[Port], operator: Operator) -> Result:
    frames = [port.frame for port in ports]
    return Result(run_tasks(frames, operator, name=node.name).select(*COLUMNS), "append")
