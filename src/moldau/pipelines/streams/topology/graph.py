"""The graph of a program's operators, and the names of its nodes.

Names are those of Kafka Streams: a prefix for the kind of operator and a number from one counter. An operator
takes a number even if the user names it, so that naming one operator renames no other. Internal topics are
named after nodes and stores, so two versions of a program (or the same program in Java) share their topics
only if they create their operators in the same order.

`Node.parents` are the edges of Java's graph and determine the description. `Node.ports` are the inputs of the
operator in order; a join with a table has the table among its ports, but not among its parents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.pipelines.streams.dsl.parameters import Materialized, checked_name
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.stores import StoreKind
from moldau.pipelines.streams.dsl.windows import AggregationWindows, SessionWindows
from moldau.pipelines.streams.topology.operations import Operation, Repartition, Root

REPARTITION_SUFFIX = "-repartition"
_GENERATED_NAME = re.compile(r"KSTREAM.*-[0-9]{10}")


@dataclass(slots=True)
class TableStore:
    """The store of a table. Java materializes only the tables whose old values an operator needs. That is
    known only when the program is complete, so `materialized` may still change."""

    name: str
    #: Named by the user, and so available to interactive queries.
    queryable: bool
    materialized: bool
    kind: StoreKind = "key-value"
    windows: AggregationWindows | None = None
    retention_ms: int | None = None
    topic_config: Mapping[str, str] = field(default_factory=dict)

    @property
    def changelog(self) -> str:
        """The changelog topic, without the prefix of the application id."""
        return f"{self.name}-changelog"


@dataclass(eq=False, slots=True)
class Node:
    """An operator in the graph. The serdes are those of its results, as far as they are known."""

    name: str
    operation: Operation
    ports: tuple[Node, ...] = ()
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    #: The store of the table that the operator creates, if any.
    store: TableStore | None = None
    is_table: bool = False
    parents: list[Node] = field(default_factory=list, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)
    #: Operators that look up rows of this table, in addition to the children.
    readers: list[Node] = field(default_factory=list, repr=False)
    priority: int = 0

    def add_child(self, child: Node) -> None:
        if child not in self.children:
            self.children.append(child)
            child.parents.append(self)

    def remove_child(self, child: Node) -> None:
        self.children.remove(child)
        child.parents.remove(self)


class Graph:
    """The nodes of a program, and the counter of their names."""

    def __init__(self) -> None:
        self.root = Node("root", Root())
        #: Stores added for processors, by name.
        self.state_stores: dict[str, object] = {}
        self._names = 0
        self._priorities = 0

    def new_name(self, prefix: str) -> str:
        name = f"{prefix}{self._names:010d}"
        self._names += 1
        return name

    def name_or_new(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """Return the user's name, or a generated one. A number is taken in either case."""
        generated = self.new_name(prefix)
        return generated if name is None else checked_name(name + suffix)

    def new_store_name(self, prefix: str) -> str:
        return self.new_name(f"{prefix}STATE-STORE-")

    def new_store(
        self,
        materialized: Materialized | None,
        prefix: str,
        windows: AggregationWindows | None = None,
        *,
        materialize: bool = True,
    ) -> TableStore:
        given = materialized or Materialized()
        return TableStore(
            name=given.name or self.new_store_name(prefix),
            queryable=given.name is not None,
            materialized=materialize or given.name is not None,
            kind=_store_kind(windows),
            windows=windows,
            retention_ms=given.retention_ms,
            topic_config=dict(given.topic_config),
        )

    def add(self, parents: Node | Sequence[Node], node: Node) -> Node:
        """Add a node as a child of its parents. A node that is added again moves to the end of the order."""
        for parent in [parents] if isinstance(parents, Node) else parents:
            parent.add_child(node)
            node.priority = self._priorities
            self._priorities += 1
        return node

    def nodes(self) -> Iterator[Node]:
        """Return all nodes except the root, each after its parents and otherwise in the order of the
        program."""
        waiting, written = [self.root], {self.root}
        while waiting:
            node = waiting.pop(0)
            if (
                node is not self.root
                and node not in written
                and all(each in written for each in node.parents)
            ):
                written.add(node)
                yield node
            waiting = sorted([*waiting, *node.children], key=lambda each: each.priority)
            waiting = [each for each in waiting if each not in written]


def repartition_node(
    graph: Graph,
    prefix: str,
    key_serde: Serde | None,
    value_serde: Serde | None,
    partitions: int | None = None,
    partitioner: Callable[[str, Any, Any, int], int] | None = None,
) -> Node:
    """Create a node for the topic `<prefix>-repartition`, without adding it to the graph. It takes three
    numbers, for its sink, its filter of null keys and its source."""
    topic = prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX
    sink = graph.new_name("KSTREAM-SINK-")
    null_filter = graph.new_name("KSTREAM-FILTER-")
    source = graph.new_name("KSTREAM-SOURCE-")
    if not _GENERATED_NAME.fullmatch(prefix):
        sink, null_filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    operation = Repartition(topic, sink, source, null_filter, key_serde, value_serde, partitions, partitioner)
    return Node(source, operation, key_serde=key_serde, value_serde=value_serde)


def _store_kind(windows: AggregationWindows | None) -> StoreKind:
    if windows is None:
        return "key-value"
    return "session" if isinstance(windows, SessionWindows) else "window"
