"""`CogroupedKStream` (KIP-150): several grouped streams, each with its own aggregator, update one aggregate
per key.

    clicks.group_by_key().cogroup(add_click).cogroup(purchases.group_by_key(), add_purchase).aggregate(dict)

Windows work as for a single stream. The inputs of the aggregate are the grouped streams in the order in which
they were added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import Materialized, Named, given_name
from moldau.pipelines.streams.dsl.serdes import windowed_serde
from moldau.pipelines.streams.dsl.windows import (
    AggregationWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import Aggregate

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.grouped_stream import KGroupedStream

_PREFIX = "COGROUPKSTREAM-AGGREGATE-"

#: Takes key, value and the current aggregate, and returns the new aggregate.
Aggregator = Callable[[Any, Any, Any], Any]


class CogroupedKStream:
    """Grouped streams with their aggregators."""

    def __init__(self, grouped: KGroupedStream, aggregator: Aggregator) -> None:
        self._graph = grouped.graph
        self._groups = {grouped: aggregator}
        #: The repartition topics of groups whose keys changed, created by the first aggregate.
        self._through: dict[KGroupedStream, Node] = {}

    def cogroup(self, grouped: KGroupedStream, aggregator: Aggregator) -> CogroupedKStream:
        """Add a grouped stream with its aggregator."""
        self._groups[grouped] = aggregator
        return self

    def aggregate(
        self,
        initializer: Callable[[], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self.aggregated(None, initializer, None, name, materialized)

    def windowed_by(
        self, windows: AggregationWindows
    ) -> TimeWindowedCogroupedKStream | SessionWindowedCogroupedKStream:
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self, windows)
        if isinstance(windows, TimeWindows | SlidingWindows):
            return TimeWindowedCogroupedKStream(self, windows)
        raise TopologyException(
            f"windowed_by takes TimeWindows, SlidingWindows or SessionWindows, not {type(windows).__name__}"
        )

    def aggregated(
        self,
        windows: AggregationWindows | None,
        initializer: Callable[[], Any],
        merger: Callable[[Any, Any, Any], Any] | None,
        name: Named | str | None,
        materialized: Materialized | None,
    ) -> KTable:
        """Add the aggregate's nodes, numbered in Java's order."""
        graph, given = self._graph, materialized or Materialized()
        chosen = given_name(name)
        store = graph.new_store(materialized, _PREFIX, windows)
        parents = [self._parent(grouped, store.name) for grouped in self._groups]
        processors = tuple(
            graph.name_or_new(chosen, _PREFIX, f"-cogroup-agg-{number}") for number in range(len(parents))
        )
        operation = Aggregate(
            "cogroup",
            store,
            windows,
            initializer,
            merger=merger,
            aggregators=tuple(self._groups.values()),
            processors=processors,
        )
        own_name = graph.name_or_new(chosen, "COGROUPKSTREAM-MERGE-", "-cogroup-merge")
        key_serde = given.key_serde or next(iter(self._groups)).key_serde
        windowed = windowed_serde(key_serde, windows)
        node = Node(own_name, operation, tuple(parents), windowed, given.value_serde, store, is_table=True)
        return KTable(graph, graph.add(parents, node))

    def _parent(self, grouped: KGroupedStream, store_name: str) -> Node:
        if not grouped.repartition_required:
            return grouped.read_node()
        through = grouped.new_repartition(store_name)
        if grouped not in self._through:
            self._through[grouped] = self._graph.add(through.ports, through)
        return self._through[grouped]


class TimeWindowedCogroupedKStream:
    """Cogrouped streams in tumbling, hopping or sliding windows."""

    def __init__(self, cogrouped: CogroupedKStream, windows: TimeWindows | SlidingWindows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        return self._cogrouped.aggregated(self._windows, initializer, None, name, materialized)


class SessionWindowedCogroupedKStream:
    """Cogrouped streams in session windows."""

    def __init__(self, cogrouped: CogroupedKStream, windows: SessionWindows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], Any],
        merger: Callable[[Any, Any, Any], Any],
        name: Named | str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Aggregate per session. The merger takes the key and the aggregates of two sessions to merge."""
        return self._cogrouped.aggregated(self._windows, initializer, merger, name, materialized)
