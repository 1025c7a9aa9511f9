"""`KStream`: a stream of records, and what can be done with it.

Every method adds a node to the graph and gives the stream that leaves it. A method that may change keys
marks the stream (`repartition_required`), so that grouping and joining go through an internal topic first;
a method that may change values forgets the value's serde, because nobody can know the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl import stream_joins
from moldau.pipelines.streams.dsl.branches import BranchedKStream
from moldau.pipelines.streams.dsl.grouped import KGroupedStream
from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import (
    Function,
    Grouped,
    Joined,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    StreamJoined,
)
from moldau.pipelines.streams.dsl.repartitioning import repartition_node
from moldau.pipelines.streams.dsl.stream_steps import StreamSteps, named
from moldau.pipelines.streams.dsl.windows import JoinWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import (
    Merge,
    SelectKey,
    Sink,
    Split,
    ToTable,
)
from moldau.pipelines.streams.topology.stateful import Process

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.builder import GlobalKTable


class KStream(StreamSteps):
    """A stream of records. Predicates and mappers take key and value; value mappers the value, or both."""

    def split(self, name: Named | str | None = None) -> BranchedKStream:
        return BranchedKStream(self, self._then(Split(), "KSTREAM-BRANCH-", name).node)

    def merge(self, other: KStream, name: Named | str | None = None) -> KStream:
        node = Node(
            self.graph.name_or_new(named(name), "KSTREAM-MERGE-"), Merge(), ports=(self.node, other.node)
        )
        self.graph.add((self.node, other.node), node)
        needed = self.repartition_required or other.repartition_required
        return KStream(self.graph, node, repartition_required=needed)

    def repartition(self, repartitioned: Repartitioned | None = None) -> KStream:
        """Through an internal topic."""
        given = repartitioned or Repartitioned()
        prefix = given.name or self.graph.new_name("KSTREAM-REPARTITION-")
        node = repartition_node(
            self.graph,
            prefix,
            given.key_serde or self.key_serde,
            given.value_serde or self.value_serde,
            given.number_of_partitions,
            given.partitioner,
        )
        node.ports = (self.node,)
        return KStream(self.graph, self.graph.add(self.node, node))

    def to(self, topic: str | Callable[[Any, Any, Any], str], produced: Produced | None = None) -> None:
        """Into a topic, or into the one that a function of key, value and record context names."""
        given = produced or Produced()
        if given.partitioner is not None and not isinstance(topic, str):
            raise TopologyException(
                "A partitioner needs to know its topic: name the topic in to(), or leave the partitioner out"
            )
        sink = Sink(
            topic if isinstance(topic, str) else None,
            None if isinstance(topic, str) else topic,
            given.key_serde or self.key_serde,
            given.value_serde or self.value_serde,
            given.partitioner,
        )
        self._then(sink, "KSTREAM-SINK-", given.name)

    def to_table(self, name: Named | str | None = None, materialized: Materialized | None = None) -> KTable:
        """The last value of every key."""
        own_name = self.graph.name_or_new(named(name), "KSTREAM-TOTABLE-")
        store = self.graph.new_store(materialized, "KSTREAM-TOTABLE-", materialize=False)
        given = materialized or Materialized()
        key_serde, value_serde = given.key_serde or self.key_serde, given.value_serde or self.value_serde
        parent = self.node
        if self.repartition_required:
            through = repartition_node(self.graph, own_name, key_serde, value_serde)
            through.ports = (parent,)
            parent = self.graph.add(parent, through)
        node = Node(own_name, ToTable(store), (parent,), key_serde, value_serde, store, is_table=True)
        return KTable(self.graph, self.graph.add(parent, node))

    def group_by_key(self, grouped: Grouped | None = None) -> KGroupedStream:
        given = grouped or Grouped(self.key_serde, self.value_serde)
        return KGroupedStream(self.graph, self.node, given, self.repartition_required)

    def group_by(self, key_selector: Function, grouped: Grouped | None = None) -> KGroupedStream:
        given = grouped or Grouped(None, self.value_serde)
        selected = self._then(SelectKey(key_selector), "KSTREAM-KEY-SELECT-", given.name, key=True)
        return KGroupedStream(self.graph, selected.node, given, True)

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Function,
        windows: JoinWindows | None = None,
        joined: StreamJoined | Joined | None = None,
        *,
        key_selector: Callable[[Any, Any], Any] | None = None,
        name: Named | str | None = None,
    ) -> KStream:
        """With a stream (needs windows), a table, or a global table (needs the key selector)."""
        return stream_joins.join("inner", self, other, joiner, windows, joined, key_selector, named(name))

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Function,
        windows: JoinWindows | None = None,
        joined: StreamJoined | Joined | None = None,
        *,
        key_selector: Callable[[Any, Any], Any] | None = None,
        name: Named | str | None = None,
    ) -> KStream:
        return stream_joins.join("left", self, other, joiner, windows, joined, key_selector, named(name))

    def outer_join(
        self,
        other: KStream,
        joiner: Function,
        windows: JoinWindows | None = None,
        joined: StreamJoined | None = None,
    ) -> KStream:
        return stream_joins.join("outer", self, other, joiner, windows, joined, None, None)

    def process(
        self, supplier: Callable[[], Any], *store_names: str, name: Named | str | None = None
    ) -> KStream:
        """Through a processor of your own, which may forward anything."""
        return self._process(supplier, store_names, named(name), "KSTREAM-PROCESSOR-", fixed_key=False)

    def process_values(
        self, supplier: Callable[[], Any], *store_names: str, name: Named | str | None = None
    ) -> KStream:
        """Through a processor of your own that leaves keys alone."""
        return self._process(supplier, store_names, named(name), "KSTREAM-PROCESSVALUES-", fixed_key=True)

    def _process(
        self,
        supplier: Callable[[], Any],
        store_names: tuple[str, ...],
        name: str | None,
        prefix: str,
        *,
        fixed_key: bool,
    ) -> KStream:
        node = Node(
            name or self.graph.new_name(prefix),
            Process(supplier, store_names, fixed_key),
            (self.node,),
            self.key_serde if fixed_key else None,
        )
        self.graph.add(self.node, node)
        return KStream(self.graph, node, repartition_required=self.repartition_required or not fixed_key)
