"""`KTable.transform_values`: a table's values by a transformer of the user's, with stores and timers.

It runs as a processor that leaves keys alone and forwards what the transformer gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.pipelines.streams.dsl.parameters import Materialized
from moldau.pipelines.streams.dsl.processors import (
    FixedKeyProcessor,
    ProcessorContext,
    Record,
    ValueTransformerWithKey,
)
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import Process

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.ktable import KTable

_PREFIX = "KTABLE-TRANSFORMVALUES-"


def transform_node(
    table: KTable,
    supplier: Callable[[], ValueTransformerWithKey],
    store_names: tuple[str, ...],
    name: str | None,
    materialized: Materialized | None,
) -> Node:
    """The node of the result. Only a store with a name is made, and one without uses up no number."""
    graph, given = table.graph, materialized or Materialized()
    store = None if given.name is None else graph.new_store(given, _PREFIX)
    node = Node(
        graph.name_or_new(name, _PREFIX),
        Process(_Supplier(supplier), store_names, fixed_key=True),
        (table.node,),
        given.key_serde or table.key_serde,
        given.value_serde,
        store,
        is_table=True,
    )
    return graph.add(table.node, node)


@dataclass(frozen=True, slots=True)
class _Supplier:
    supplier: Callable[[], ValueTransformerWithKey]

    def __call__(self) -> FixedKeyProcessor:
        return _Transforming(self.supplier())


class _Transforming(FixedKeyProcessor):
    def __init__(self, transformer: ValueTransformerWithKey) -> None:
        self._transformer = transformer

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._transformer.init(context)

    def process(self, record: Record) -> None:
        if record.key is not None:
            value = self._transformer.transform(record.key, record.value)
            self.context.forward(record.with_value(value))

    def close(self) -> None:
        self._transformer.close()
