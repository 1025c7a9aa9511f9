"""`KStream`: a stream of records, and the operators that can be applied to it.

Every operator adds a node to the graph and returns the stream of its results. An operator that may change
keys sets `repartition_required`, so that grouping and joining write to an internal topic first. An operator
that may change values clears the value serde, because the serde of the new values is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl import stream_joins
from moldau.pipelines.streams.dsl.grouped_stream import KGroupedStream
from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import (
    Branched,
    Function,
    Grouped,
    Joined,
    Materialized,
    Named,
    Printed,
    Produced,
    Repartitioned,
    StreamJoined,
    given_name,
)
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.windows import JoinWindows
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Graph, Node, repartition_node
from moldau.pipelines.streams.topology.operations import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    Map,
    MapValues,
    Merge,
    Operation,
    Peek,
    Print,
    SelectKey,
    Sink,
    Split,
    ToTable,
    takes_key,
)
from moldau.pipelines.streams.topology.stateful import Process

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.builder import GlobalKTable


class KStream:
    """A stream of records. Predicates and mappers take key and value; value mappers take the value, or
    both."""

    def __init__(self, graph: Graph, node: Node, *, repartition_required: bool = False) -> None:
        self.graph = graph
        self.node = node
        self.repartition_required = repartition_required
        #: The repartition topic that the joins of this stream share, created by the first of them.
        self.repartitioned: Node | None = None

    @property
    def key_serde(self) -> Serde | None:
        return self.node.key_serde

    @property
    def value_serde(self) -> Serde | None:
        return self.node.value_serde

    def filter(self, predicate: Function, name: Named | str | None = None) -> KStream:
        return self._then(Filter(predicate), "KSTREAM-FILTER-", name)

    def filter_not(self, predicate: Function, name: Named | str | None = None) -> KStream:
        return self._then(Filter(predicate, negated=True), "KSTREAM-FILTER-", name)

    def select_key(self, mapper: Function, name: Named | str | None = None) -> KStream:
        return self._then(SelectKey(mapper), "KSTREAM-KEY-SELECT-", name, key=True)

    def map(self, mapper: Callable[[Any, Any], tuple[Any, Any]], name: Named | str | None = None) -> KStream:
        """Replace key and value of every record."""
        return self._then(Map(mapper), "KSTREAM-MAP-", name, key=True, value=True)

    def map_values(self, mapper: Function, name: Named | str | None = None) -> KStream:
        step = MapValues(mapper, takes_key(mapper, 1))
        return self._then(step, "KSTREAM-MAPVALUES-", name, value=True)

    def flat_map(self, mapper: Callable[[Any, Any], Any], name: Named | str | None = None) -> KStream:
        """Replace every record by any number of (key, value) pairs."""
        return self._then(FlatMap(mapper), "KSTREAM-FLATMAP-", name, key=True, value=True)

    def flat_map_values(self, mapper: Callable[..., Any], name: Named | str | None = None) -> KStream:
        step = FlatMapValues(mapper, takes_key(mapper, 1))
        return self._then(step, "KSTREAM-FLATMAPVALUES-", name, value=True)

    def peek(self, action: Callable[[Any, Any], Any], name: Named | str | None = None) -> KStream:
        return self._then(Peek(action), "KSTREAM-PEEK-", name)

    def foreach(self, action: Callable[[Any, Any], Any], name: Named | str | None = None) -> None:
        self._then(ForEach(action), "KSTREAM-FOREACH-", name)

    def print(self, printed: Printed | None = None) -> None:
        """Print each record as a line, on the Spark worker that processes it."""
        given = printed or Printed()
        self._then(Print(given, given.label or self.node.name), "KSTREAM-PRINTER-", given.name)

    def split(self, name: Named | str | None = None) -> BranchedKStream:
        return BranchedKStream(self, self._then(Split(), "KSTREAM-BRANCH-", name).node)

    def merge(self, other: KStream, name: Named | str | None = None) -> KStream:
        node = Node(
            self.graph.name_or_new(given_name(name), "KSTREAM-MERGE-"), Merge(), ports=(self.node, other.node)
        )
        self.graph.add((self.node, other.node), node)
        needed = self.repartition_required or other.repartition_required
        return KStream(self.graph, node, repartition_required=needed)

    def repartition(self, repartitioned: Repartitioned | None = None) -> KStream:
        """Write the stream to a repartition topic and continue from there."""
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
        """Write to a topic, or to the topic that a function of key, value and record context returns."""
        given = produced or Produced()
        if given.partitioner is not None and not isinstance(topic, str):
            raise TopologyException(
                "A partitioner needs a fixed topic: pass the topic's name to to(), or omit the partitioner"
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
        """Return the table of the latest value of every key."""
        own_name = self.graph.name_or_new(given_name(name), "KSTREAM-TOTABLE-")
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
        """Join with a stream (requires windows), a table, or a global table (requires `key_selector`)."""
        return stream_joins.join(
            "inner", self, other, joiner, windows, joined, key_selector, given_name(name)
        )

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
        return stream_joins.join("left", self, other, joiner, windows, joined, key_selector, given_name(name))

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
        """Apply a custom processor, which may forward any number of records with any key."""
        return self._process(supplier, store_names, given_name(name), "KSTREAM-PROCESSOR-", fixed_key=False)

    def process_values(
        self, supplier: Callable[[], Any], *store_names: str, name: Named | str | None = None
    ) -> KStream:
        """Apply a custom processor that does not change keys."""
        return self._process(
            supplier, store_names, given_name(name), "KSTREAM-PROCESSVALUES-", fixed_key=True
        )

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

    def _then(
        self,
        operation: Operation,
        prefix: str,
        name: Named | str | None,
        *,
        key: bool = False,
        value: bool = False,
    ) -> KStream:
        """Add a stateless step; `key` and `value` say which of them it may change."""
        node = Node(
            self.graph.name_or_new(given_name(name), prefix),
            operation,
            (self.node,),
            None if key else self.key_serde,
            None if value else self.value_serde,
        )
        self.graph.add(self.node, node)
        return KStream(self.graph, node, repartition_required=self.repartition_required or key)


class BranchedKStream:
    """The branches of `KStream.split`. A branch is named after the split and its own name or number."""

    def __init__(self, source: KStream, splitter: Node) -> None:
        self._source = source
        self._splitter = splitter
        self._branches: dict[str, KStream] = {}

    def branch(self, predicate: Function, branched: Branched | str | None = None) -> BranchedKStream:
        """Add a branch for records that match the predicate and no earlier branch."""
        predicates = self._predicates
        predicates.append(predicate)
        self._add(branched, len(predicates), len(predicates) - 1)
        return self

    def default_branch(self, branched: Branched | str | None = None) -> dict[str, KStream]:
        """Add a branch for all other records, and return all branches by name."""
        self._add(branched, 0, None)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream]:
        """Drop all other records, and return all branches by name."""
        return self._branches

    @property
    def _predicates(self) -> list[Function]:
        operation = self._splitter.operation
        return operation.predicates if isinstance(operation, Split) else []

    def _add(self, branched: Branched | str | None, number: int, position: int | None) -> None:
        given = Branched(branched) if isinstance(branched, str) else branched or Branched()
        name = f"{self._splitter.name}{number if given.name is None else given.name}"
        source = self._source
        source.graph.new_name(name)
        node = Node(name, Branch(position), (self._splitter,), source.key_serde, source.value_serde)
        source.graph.add(self._splitter, node)
        stream: KStream | None = KStream(source.graph, node, repartition_required=source.repartition_required)
        if given.chain is not None:
            stream = given.chain(stream)
        if stream is not None:
            self._branches[name] = stream
