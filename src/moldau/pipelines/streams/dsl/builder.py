"""`StreamsBuilder`: creates the sources of a program, and builds its `Topology`.

builder = StreamsBuilder()
orders = builder.stream("orders", Consumed.with_("string", "json"))
orders.group_by_key().count().to_stream().to("order-counts", Produced.with_("string", "long"))
streams = KafkaStreams(builder.build(), {"application.id": "counts", "bootstrap.servers": "…"})
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.pipelines.streams.dsl.kstream import KStream
from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import Consumed, Materialized
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Graph, Node
from moldau.pipelines.streams.topology.operations import Source, TableSource
from moldau.pipelines.streams.topology.topology import Topology


class GlobalKTable:
    """A table that is available as a whole to every task."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def queryable_store_name(self) -> str | None:
        return None if self.node.store is None else self.node.store.name


class StreamsBuilder:
    """Collects the operators of one application in a graph."""

    def __init__(self) -> None:
        self._graph = Graph()

    def stream(
        self, topics: str | Sequence[str] | re.Pattern[str], consumed: Consumed | None = None
    ) -> KStream:
        """Read one topic, several topics, or all topics whose names match a pattern."""
        given = consumed or Consumed()
        if isinstance(topics, re.Pattern):
            source = Source((), topics.pattern, given)
        else:
            names = (topics,) if isinstance(topics, str) else tuple(topics)
            if not names or not all(names):
                raise TopologyException("stream() needs the name of at least one topic")
            source = Source(names, None, given)
        name = self._graph.name_or_new(given.name, "KSTREAM-SOURCE-")
        node = Node(name, source, (), given.key_serde, given.value_serde)
        return KStream(self._graph, self._graph.add(self._graph.root, node))

    def table(
        self, topic: str, consumed: Consumed | None = None, materialized: Materialized | None = None
    ) -> KTable:
        """Read a topic as a table: the latest value of every key."""
        node = self._table_source(topic, consumed, materialized, is_global=False)
        return KTable(self._graph, node)

    def global_table(
        self, topic: str, consumed: Consumed | None = None, materialized: Materialized | None = None
    ) -> GlobalKTable:
        """Read a topic as a global table, which streams can join by any key."""
        return GlobalKTable(self._table_source(topic, consumed, materialized, is_global=True))

    def add_state_store(self, store: StoreBuilder) -> StreamsBuilder:
        """Add a store for the processors that name it in `process`."""
        if store.name in self._graph.state_stores:
            raise TopologyException(f"State store {store.name} has already been added")
        self._graph.state_stores[store.name] = store
        return self

    def build(self, config: Mapping[str, Any] | None = None) -> Topology:
        """Check the program and return its topology."""
        return Topology(self._graph)

    def _table_source(
        self,
        topic: str,
        consumed: Consumed | None,
        materialized: Materialized | None,
        *,
        is_global: bool,
    ) -> Node:
        if not topic:
            raise TopologyException("table() needs the name of a topic")
        given, stored = consumed or Consumed(), materialized or Materialized()
        store = self._graph.new_store(materialized, f"{topic}-", materialize=is_global)
        source_name = self._graph.name_or_new(given.name, "KSTREAM-SOURCE-", "-source")
        name = self._graph.name_or_new(given.name, "KTABLE-SOURCE-")
        node = Node(
            name,
            TableSource(topic, source_name, given, store, is_global),
            (),
            given.key_serde or stored.key_serde,
            given.value_serde or stored.value_serde,
            store,
            is_table=True,
        )
        return self._graph.add(self._graph.root, node)
