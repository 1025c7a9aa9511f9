"""A user's own processor as a task, with the changelogs of its stores beside what it forwards."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.physical.ports import OperatorContext, Port, Result
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks.processing import Processing, ProcessSettings, uses_the_clock
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import Process, forwarding_names


def process(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
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
    clock = uses_the_clock(settings) and not context.bounded
    frame = run_tasks([port.frame], Processing(settings), name=node.name, clock=clock)
    return Result(frame, "append", side_outputs=True)


def _store(node: Node, context: OperatorContext, name: str) -> StoreBuilder:
    store = context.stores.get(name)
    if not isinstance(store, StoreBuilder):
        raise TopologyException(f"{node.name} names the store {name}, which the program does not add")
    return store
