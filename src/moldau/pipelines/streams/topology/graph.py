"""The graph that a program builds, and the names of its nodes.

Names are Kafka Streams': a prefix for the kind of operator and a number that every operator takes from one
counter, also when the user names it, so that naming one thing renames nothing else. Internal topics are named
after nodes and stores, so two releases of a program (or a program here and in Java) share their topics only
if their operators come in the same order.

A node's `parents` are what Java's graph has and decide the description; its `ports` are the inputs of its
operator in order, which for a join with a table also has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from moldau.pipelines.streams.dsl.parameters import Materialized, checked_name
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.windows import AggregationWindows, SessionWindows
from moldau.pipelines.streams.topology.operations import Operation, Root

StoreKind = Literal["key-value", "window", "session"]


@dataclass(slots=True)
class TableStore:
    """Where a table is kept. Java makes a store only of tables that somebody asks for old values; that is
    known only when the whole program is written, so `materialized` may still change."""

    name: str
    #: Named by the user, and so to be asked while the program runs.
    queryable: bool
    materialized: bool
    kind: StoreKind = "key-value"
    windows: AggregationWindows | None = None
    retention_ms: int | None = None
    topic_config: Mapping[str, str] = field(default_factory=dict)

    @property
    def changelog(self) -> str:
        """The changelog topic, without the application id in front."""
        return f"{self.name}-changelog"


@dataclass(eq=False, slots=True)
class Node:
    """An operator in its place. What leaves it can be read with the serdes, as far as they are known."""

    name: str
    operation: Operation
    ports: tuple[Node, ...] = ()
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    #: The table that it makes, if it makes one.
    store: TableStore | None = None
    is_table: bool = False
    parents: list[Node] = field(default_factory=list, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)
    #: Operators that look rows up in this table, beside the children.
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
    """All nodes below one root, and the counter of names."""

    def __init__(self) -> None:
        self.root = Node("root", Root())
        #: Stores that processors share, by their names.
        self.state_stores: dict[str, object] = {}
        self._names = 0
        self._priorities = 0

    def new_name(self, prefix: str) -> str:
        name = f"{prefix}{self._names:010d}"
        self._names += 1
        return name

    def name_or_new(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """The user's name, or a new one; the number is used up in any case."""
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
        """Below its parents. A node that is added again takes its new place in the order."""
        for parent in [parents] if isinstance(parents, Node) else parents:
            parent.add_child(node)
            node.priority = self._priorities
            self._priorities += 1
        return node

    def nodes(self) -> Iterator[Node]:
        """All nodes but the root, each after its parents and otherwise in the order of the program."""
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


def _store_kind(windows: AggregationWindows | None) -> StoreKind:
    if windows is None:
        return "key-value"
    return "session" if isinstance(windows, SessionWindows) else "window"
