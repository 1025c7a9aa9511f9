"""`Topology`: a complete program, checked, and described as Java describes it."""

from __future__ import annotations

from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.describe import description
from moldau.pipelines.streams.topology.graph import Graph, Node
from moldau.pipelines.streams.topology.operations import Source, TableSource
from moldau.pipelines.streams.topology.stateful import Process


class Topology:
    """The nodes of a program, each after its parents, and its state stores."""

    def __init__(self, graph: Graph) -> None:
        _merge_equal_sources(graph)
        self.nodes: tuple[Node, ...] = tuple(graph.nodes())
        self.state_stores = dict(graph.state_stores)
        _check_topics(self.nodes)
        _check_names(self.nodes)
        _check_stores(self.nodes, self.state_stores)

    def describe(self) -> str:
        """Return the text of Java's `Topology.describe()` for the same program."""
        return description(self.nodes)


def _merge_equal_sources(graph: Graph) -> None:
    """Merge the sources of streams that read the same topics."""
    first: dict[object, Node] = {}
    for node in list(graph.root.children):
        operation = node.operation
        if not isinstance(operation, Source):
            continue
        key = operation.pattern or operation.topics
        main = first.setdefault(key, node)
        if main is node:
            continue
        if _reset(main) != _reset(node):
            raise TopologyException(
                f"{_topics(node)} is read with different offset resets, {_reset(main)} and {_reset(node)}"
            )
        for child in list(node.children):
            node.remove_child(child)
            main.add_child(child)
            child.ports = tuple(main if port is node else port for port in child.ports)
        graph.root.remove_child(node)
    _replace_ports(graph, first)


def _replace_ports(graph: Graph, first: dict[object, Node]) -> None:
    for node in graph.nodes():
        node.ports = tuple(_main(port, first) for port in node.ports)


def _main(port: Node, first: dict[object, Node]) -> Node:
    operation = port.operation
    if isinstance(operation, Source):
        return first.get(operation.pattern or operation.topics, port)
    return port


def _reset(node: Node) -> str | None:
    return node.operation.consumed.offset_reset if isinstance(node.operation, Source) else None


def _topics(node: Node) -> str:
    operation = node.operation
    if isinstance(operation, Source):
        return operation.pattern or ", ".join(operation.topics)
    return operation.topic if isinstance(operation, TableSource) else ""


def _check_topics(nodes: tuple[Node, ...]) -> None:
    """Check that every topic is read by one source."""
    read: dict[str, Node] = {}
    for node in nodes:
        operation = node.operation
        if isinstance(operation, TableSource):
            topics: tuple[str, ...] = (operation.topic,)
        elif isinstance(operation, Source):
            topics = operation.topics
        else:
            continue
        for topic in topics:
            if topic in read:
                raise TopologyException(
                    f"Topic {topic} is read by both {read[topic].name} and {node.name}: a topic can be read "
                    "as one stream or one table; reuse the KStream or KTable, or call to_table()"
                )
            read[topic] = node


def _check_names(nodes: tuple[Node, ...]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise TopologyException(f"Two operators are named {node.name}")
        seen.add(node.name)


def _check_stores(nodes: tuple[Node, ...], state_stores: dict[str, object]) -> None:
    owners: dict[str, Node] = {}
    for node in nodes:
        if node.store is not None and owners.setdefault(node.store.name, node) is not node:
            raise TopologyException(
                f"{owners[node.store.name].name} and {node.name} both have a store named {node.store.name}"
            )
        if isinstance(node.operation, Process):
            for name in node.operation.store_names:
                if name not in state_stores and not any(
                    each.store is not None and each.store.name == name for each in nodes
                ):
                    raise TopologyException(
                        f"{node.name} uses the state store {name}: add it with add_state_store"
                    )
