"""What can be done with each record of a stream by itself: the steps without state of `KStream`.

Every step adds a node to the graph and gives the stream that leaves it. A step that may change keys marks
the stream (`repartition_required`); one that may change values forgets the value's serde, because nobody can
know the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from moldau.pipelines.streams.dsl.parameters import Function, Named, Printed
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.topology.graph import Graph, Node
from moldau.pipelines.streams.topology.operations import (
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    Map,
    MapValues,
    Operation,
    Peek,
    Print,
    SelectKey,
    takes_key,
)


def named(name: Named | str | None) -> str | None:
    return name.name if isinstance(name, Named) else name


class StreamSteps:
    """A stream, and its steps."""

    def __init__(self, graph: Graph, node: Node, *, repartition_required: bool = False) -> None:
        self.graph = graph
        self.node = node
        self.repartition_required = repartition_required
        #: The internal topic that joins go through, made by the first of them.
        self.repartitioned: Node | None = None

    @property
    def key_serde(self) -> Serde | None:
        return self.node.key_serde

    @property
    def value_serde(self) -> Serde | None:
        return self.node.value_serde

    def _then(
        self,
        operation: Operation,
        prefix: str,
        name: Named | str | None,
        *,
        key: bool = False,
        value: bool = False,
    ) -> Self:
        """A stateless step; `key` and `value` say what it may change."""
        node = Node(
            self.graph.name_or_new(named(name), prefix),
            operation,
            (self.node,),
            None if key else self.key_serde,
            None if value else self.value_serde,
        )
        self.graph.add(self.node, node)
        return type(self)(self.graph, node, repartition_required=self.repartition_required or key)

    def filter(self, predicate: Function, name: Named | str | None = None) -> Self:
        return self._then(Filter(predicate), "KSTREAM-FILTER-", name)

    def filter_not(self, predicate: Function, name: Named | str | None = None) -> Self:
        return self._then(Filter(predicate, negated=True), "KSTREAM-FILTER-", name)

    def select_key(self, mapper: Function, name: Named | str | None = None) -> Self:
        return self._then(SelectKey(mapper), "KSTREAM-KEY-SELECT-", name, key=True)

    def map(self, mapper: Callable[[Any, Any], tuple[Any, Any]], name: Named | str | None = None) -> Self:
        """A new key and value for every record."""
        return self._then(Map(mapper), "KSTREAM-MAP-", name, key=True, value=True)

    def map_values(self, mapper: Function, name: Named | str | None = None) -> Self:
        step = MapValues(mapper, takes_key(mapper, 1))
        return self._then(step, "KSTREAM-MAPVALUES-", name, value=True)

    def flat_map(self, mapper: Callable[[Any, Any], Any], name: Named | str | None = None) -> Self:
        """Any number of keys and values for every record."""
        return self._then(FlatMap(mapper), "KSTREAM-FLATMAP-", name, key=True, value=True)

    def flat_map_values(self, mapper: Callable[..., Any], name: Named | str | None = None) -> Self:
        step = FlatMapValues(mapper, takes_key(mapper, 1))
        return self._then(step, "KSTREAM-FLATMAPVALUES-", name, value=True)

    def peek(self, action: Callable[[Any, Any], Any], name: Named | str | None = None) -> Self:
        return self._then(Peek(action), "KSTREAM-PEEK-", name)

    def foreach(self, action: Callable[[Any, Any], Any], name: Named | str | None = None) -> None:
        self._then(ForEach(action), "KSTREAM-FOREACH-", name)

    def print(self, printed: Printed | None = None) -> None:
        """Each record as a line, where Spark's workers run."""
        given = printed or Printed()
        self._then(Print(given, given.label or self.node.name), "KSTREAM-PRINTER-", given.name)
