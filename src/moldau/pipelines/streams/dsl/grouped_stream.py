"""`KGroupedStream` and its windowed variants: a stream grouped by key, ready to be aggregated.

`count`, `reduce` and `aggregate` are those of Kafka Streams. `aggregate_native` takes a Spark aggregate
expression over the columns of the value and runs without Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moldau.pipelines.streams.dsl.cogrouped_stream import CogroupedKStream
from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import (
    EmitStrategy,
    Function,
    Grouped,
    Materialized,
    Named,
    given_name,
)
from moldau.pipelines.streams.dsl.serdes import Serde, Serdes, windowed_serde
from moldau.pipelines.streams.dsl.windows import (
    AggregationWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Graph, Node, repartition_node
from moldau.pipelines.streams.topology.stateful import Aggregate, AggregateKind

_PREFIX = {
    "count": "KSTREAM-AGGREGATE-",
    "aggregate": "KSTREAM-AGGREGATE-",
    "native": "KSTREAM-AGGREGATE-",
    "reduce": "KSTREAM-REDUCE-",
}


@dataclass(frozen=True, slots=True)
class _Functions:
    initializer: Callable[[], Any] | None = None
    aggregator: Callable[..., Any] | None = None
    merger: Callable[[Any, Any, Any], Any] | None = None
    expression: Function | None = None


class KGroupedStream:
    """A stream grouped by key."""

    def __init__(self, graph: Graph, node: Node, grouped: Grouped, repartition_required: bool) -> None:
        self.graph = graph
        self.repartition_required = repartition_required
        self._node = node
        self._grouped = grouped
        #: The repartition topic; aggregates of one group share it if the user named it.
        self._through: Node | None = None

    def count(self, name: Named | str | None = None, materialized: Materialized | None = None) -> KTable:
        return self.aggregated("count", None, _Functions(), name, materialized)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Combine values. The reducer takes the current aggregate and a value; the first value of a key is
        its first aggregate."""
        return self.aggregated("reduce", None, _Functions(aggregator=reducer), name, materialized)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Aggregate values. The aggregator takes key, value and the current aggregate, and returns the new
        one."""
        functions = _Functions(initializer, aggregator)
        return self.aggregated("aggregate", None, functions, name, materialized)

    def aggregate_native(
        self,
        expression: Function,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Compute a Spark aggregate expression over key and value, such as "sum(value.amount)"."""
        return self.aggregated("native", None, _Functions(expression=expression), name, materialized)

    def cogroup(self, aggregator: Callable[[Any, Any, Any], Any]) -> CogroupedKStream:
        """Start a cogroup: other grouped streams, each with its own aggregator, update the same aggregate."""
        return CogroupedKStream(self, aggregator)

    def windowed_by(self, windows: AggregationWindows) -> TimeWindowedKStream | SessionWindowedKStream:
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self, windows)
        if isinstance(windows, TimeWindows | SlidingWindows):
            return TimeWindowedKStream(self, windows)
        raise TopologyException(
            f"windowed_by takes TimeWindows, SlidingWindows or SessionWindows, not {type(windows).__name__}"
        )

    def aggregated(
        self,
        kind: AggregateKind,
        windows: AggregationWindows | None,
        functions: _Functions,
        name: Named | str | None,
        materialized: Materialized | None,
        on_close: bool = False,
    ) -> KTable:
        """Add the aggregate's nodes, numbered in Java's order."""
        graph, prefix = self.graph, _PREFIX[kind]
        unnamed = materialized is not None and materialized.name is None
        if kind == "count" and unnamed and not isinstance(windows, SlidingWindows):
            graph.new_store_name(prefix)
        store = graph.new_store(materialized, prefix, windows)
        given = self._serdes(kind, materialized or Materialized())
        own_name = graph.name_or_new(given_name(name), prefix)
        operation = Aggregate(
            kind,
            store,
            windows,
            functions.initializer,
            functions.aggregator,
            functions.merger,
            functions.expression,
            on_close,
        )
        parent = self._parent(store.name)
        key_serde = windowed_serde(given.key_serde, windows)
        node = Node(own_name, operation, (parent,), key_serde, given.value_serde, store, is_table=True)
        return KTable(graph, graph.add(parent, node))

    def _serdes(self, kind: AggregateKind, materialized: Materialized) -> Materialized:
        value_serde = materialized.value_serde
        if value_serde is None and kind == "count":
            value_serde = Serdes.long()
        if value_serde is None and kind == "reduce":
            value_serde = self._grouped.value_serde
        key_serde = materialized.key_serde or self._grouped.key_serde
        return replace(materialized, key_serde=key_serde, value_serde=value_serde)

    def _parent(self, store_name: str) -> Node:
        """Return the node that the aggregate reads: the stream, or a repartition topic if its keys
        changed."""
        if not self.repartition_required:
            return self.read_node()
        through = self.new_repartition(store_name)
        if self._through is None or self._grouped.name is None:
            self._through = through
        return self.graph.add(self._node, self._through)

    def read_node(self) -> Node:
        """Return the stream's node, with the serdes of the group where the stream has none."""
        node = self._node
        node.key_serde = node.key_serde or self._grouped.key_serde
        node.value_serde = node.value_serde or self._grouped.value_serde
        return node

    def new_repartition(self, store_name: str) -> Node:
        """Create a repartition node named by the user or after a store, without adding it to the graph."""
        given = self._grouped
        through = repartition_node(self.graph, given.name or store_name, given.key_serde, given.value_serde)
        through.ports = (self._node,)
        return through

    @property
    def key_serde(self) -> Serde | None:
        serde: Serde | None = self._grouped.key_serde
        return serde


class TimeWindowedKStream:
    """A grouped stream in tumbling, hopping or sliding windows."""

    def __init__(
        self, grouped: KGroupedStream, windows: TimeWindows | SlidingWindows, on_close: bool = False
    ) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = on_close

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedKStream:
        return TimeWindowedKStream(self._grouped, self._windows, strategy.on_close)

    def count(self, name: Named | str | None = None, materialized: Materialized | None = None) -> KTable:
        return self._aggregated("count", _Functions(), name, materialized)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._aggregated("reduce", _Functions(aggregator=reducer), name, materialized)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._aggregated("aggregate", _Functions(initializer, aggregator), name, materialized)

    def aggregate_native(
        self,
        expression: Function,
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        if isinstance(self._windows, SlidingWindows):
            raise TopologyException(
                "aggregate_native does not support SlidingWindows, which Spark does not have: use aggregate"
            )
        return self._aggregated("native", _Functions(expression=expression), name, materialized)

    def _aggregated(
        self,
        kind: AggregateKind,
        functions: _Functions,
        name: Named | str | None,
        materialized: Materialized | None,
    ) -> KTable:
        return self._grouped.aggregated(kind, self._windows, functions, name, materialized, self._on_close)


class SessionWindowedKStream:
    """A grouped stream in session windows."""

    def __init__(self, grouped: KGroupedStream, windows: SessionWindows, on_close: bool = False) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = on_close

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedKStream:
        return SessionWindowedKStream(self._grouped, self._windows, strategy.on_close)

    def count(self, name: Named | str | None = None, materialized: Materialized | None = None) -> KTable:
        return self._aggregated("count", _Functions(), name, materialized)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._aggregated("reduce", _Functions(aggregator=reducer), name, materialized)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Callable[[Any, Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Aggregate per session. The merger takes the key and the aggregates of two sessions to merge."""
        functions = _Functions(initializer, aggregator, merger)
        return self._aggregated("aggregate", functions, name, materialized)

    def _aggregated(
        self,
        kind: AggregateKind,
        functions: _Functions,
        name: Named | str | None,
        materialized: Materialized | None,
    ) -> KTable:
        return self._grouped.aggregated(kind, self._windows, functions, name, materialized, self._on_close)
