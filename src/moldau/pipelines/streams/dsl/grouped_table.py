"""`KGroupedTable`: the rows of a table, grouped by another key.

An update subtracts the old value of a row from the aggregate of its group and adds the new value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.parameters import Grouped, Materialized, Named, given_name
from moldau.pipelines.streams.dsl.serdes import Serde, Serdes
from moldau.pipelines.streams.topology.graph import REPARTITION_SUFFIX, Graph, Node
from moldau.pipelines.streams.topology.operations import Repartition
from moldau.pipelines.streams.topology.stateful import AggregateKind, TableAggregate

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.ktable import KTable


def _add_one(_key: Any, _value: Any, count: int) -> int:
    return count + 1


def _subtract_one(_key: Any, _value: Any, count: int) -> int:
    return count - 1


class KGroupedTable:
    """A table grouped by another key."""

    def __init__(self, graph: Graph, node: Node, grouped: Grouped) -> None:
        self._graph = graph
        self._node = node
        self._grouped = grouped
        self._through: Node | None = None

    def count(self, name: Named | str | None = None, materialized: Materialized | None = None) -> KTable:
        given = materialized or Materialized()
        return self._aggregated(
            "count", name, given, given.value_serde or Serdes.long(), (int, _add_one, _subtract_one)
        )

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        given = materialized or Materialized()
        value_serde = given.value_serde or self._grouped.value_serde
        return self._aggregated("reduce", name, given, value_serde, (None, adder, subtractor))

    def aggregate(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Aggregate rows. Adder and subtractor take key, value and the current aggregate."""
        given = materialized or Materialized()
        functions = (initializer, adder, subtractor)
        return self._aggregated("aggregate", name, given, given.value_serde, functions)

    def _aggregated(
        self,
        kind: AggregateKind,
        name: Named | str | None,
        materialized: Materialized,
        value_serde: Serde | None,
        functions: tuple[Callable[[], Any] | None, Callable[..., Any], Callable[..., Any]],
    ) -> KTable:
        from moldau.pipelines.streams.dsl.ktable import KTable

        graph = self._graph
        chosen = given_name(name)
        store = graph.new_store(materialized, "KTABLE-AGGREGATE-")
        sink_name = graph.name_or_new(chosen, "KSTREAM-SINK-", "-sink")
        source_name = graph.name_or_new(chosen, "KSTREAM-SOURCE-", "-source")
        prefix = "KTABLE-REDUCE-" if kind == "reduce" else "KTABLE-AGGREGATE-"
        own_name = graph.name_or_new(chosen, prefix)
        through = self._repartition(sink_name, source_name, store.name)
        initializer, adder, subtractor = functions
        node = Node(
            own_name,
            TableAggregate(kind, store, initializer, adder, subtractor),
            (through,),
            materialized.key_serde or self._grouped.key_serde,
            value_serde,
            store,
            is_table=True,
        )
        return KTable(graph, graph.add(through, node))

    def _repartition(self, sink_name: str, source_name: str, store_name: str) -> Node:
        grouped = self._grouped
        if self._through is None or grouped.name is None:
            self._through = Node(
                source_name,
                Repartition(
                    (grouped.name or store_name) + REPARTITION_SUFFIX,
                    sink_name,
                    source_name,
                    None,
                    grouped.key_serde,
                    grouped.value_serde,
                ),
                (self._node,),
                grouped.key_serde,
                grouped.value_serde,
            )
        return self._graph.add(self._node, self._through)
