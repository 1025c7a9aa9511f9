"""The stages of a topology. A stage is one Spark query: topics, chains, at most one stateful operator, a
chain, topics.

A chain starts at an *origin*: a source topic, a repartition topic, or the output of an earlier stage's
operator (the changelog of its table, or a repartition topic that Kafka Streams would not need). It ends at
*leaves*: sinks, repartition topics, changelogs, `foreach` and `print`. The steps in between are stateless and
are repeated for every origin that reaches them, so that stages share nothing but topics.

`suppress(until_window_closes)` is computed by the aggregate itself: its stage runs the aggregate a second
time and emits final results only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import (
    ForEach,
    Print,
    Repartition,
    Sink,
    Source,
    TableSource,
    ToTable,
)
from moldau.pipelines.streams.topology.stateful import Aggregate, JoinWindowed, Suppress, is_kept, is_stateful


@dataclass(frozen=True, slots=True)
class Chain:
    """The stateless nodes from one origin to some leaves, or to one input of an operator."""

    origin: Node
    nodes: tuple[Node, ...]
    leaves: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One Spark query. `ports` are the chains to the operator's inputs, `after` is the chain from its output.
    In a stage without an operator, the chains of `before` lead to the leaves."""

    name: str
    operator: Node | None
    ports: tuple[tuple[Chain, ...], ...]
    before: tuple[Chain, ...]
    after: Chain | None
    #: The operator emits results only when their windows close.
    final: bool = False

    @property
    def origins(self) -> tuple[Node, ...]:
        chains = [chain for port in self.ports for chain in port] + list(self.before)
        return tuple(dict.fromkeys(chain.origin for chain in chains))

    @property
    def leaves(self) -> tuple[Node, ...]:
        chains = [*self.before, *([] if self.after is None else [self.after])]
        return tuple(dict.fromkeys(leaf for chain in chains for leaf in chain.leaves))


def stages(nodes: Sequence[Node]) -> tuple[Stage, ...]:
    """Return the stages of a topology, each after the stages whose topics it reads."""
    made = [*_stateless(nodes)]
    for node in nodes:
        if not is_stateful(node):
            continue
        if isinstance(node.operation, Suppress) and node.operation.limit_ms is None:
            made.append(_window_end(node))
        elif not final_only_consumers(node):
            made.append(_stateful(node))
    return tuple(stage for level in levels(made) for stage in level)


def levels(made: Sequence[Stage]) -> list[list[Stage]]:
    """Group stages into levels that can run concurrently, each after the levels that write its inputs."""
    waiting, placed = list(made), []
    while waiting:
        unwritten = {leaf for stage in waiting for leaf in stage.leaves}
        ready = [stage for stage in waiting if not any(origin in unwritten for origin in stage.origins)]
        placed.append(ready or waiting)
        waiting = [stage for stage in waiting if stage not in placed[-1]]
    return placed


def is_origin(node: Node) -> bool:
    return isinstance(node.operation, Source | TableSource | Repartition | ToTable) or is_stateful(node)


def is_leaf(node: Node) -> bool:
    """Whether a node writes the rows of a chain to a topic or performs an action; the chain may continue
    after it."""
    if isinstance(node.operation, Sink | Repartition | ForEach | Print | ToTable):
        return True
    return is_kept(node) and not isinstance(node.operation, TableSource)


def written_by_operator(node: Node) -> bool:
    """Whether the results of an operator are written to a topic: the changelog of its table, or a repartition
    topic for stateful operators that follow."""
    if not is_stateful(node):
        return False
    return is_kept(node) or any(_consumers(node))


def _consumers(node: Node) -> Iterable[Node]:
    """Return the stateful operators that consume a node's rows, directly or after stateless steps."""
    for child in node.children:
        if isinstance(child.operation, JoinWindowed | Repartition | ToTable):
            continue
        if is_stateful(child):
            yield child
        else:
            yield from _consumers(child)
    yield from node.readers


def _origins(node: Node) -> tuple[Node, ...]:
    if is_origin(node):
        return (node,)
    return tuple(dict.fromkeys(origin for port in node.ports for origin in _origins(port)))


def _chain(origin: Node, leaves: Sequence[Node]) -> Chain:
    """Return the chain from an origin to leaves, with its nodes in the order of the program."""
    wanted = set(leaves)
    nodes: dict[Node, None] = {}

    def reaches(node: Node) -> bool:
        found = node in wanted and node is not origin
        for child in node.children:
            if not _is_end(child) or child in wanted:
                found = reaches(child) or found
        if found and node is not origin:
            nodes[node] = None
        return found

    reaches(origin)
    return Chain(
        origin, tuple(reversed(nodes)), tuple(leaf for leaf in leaves if leaf in nodes or leaf is origin)
    )


def _is_end(node: Node) -> bool:
    """Whether a node ends the chain before it: a repartition topic or a stateful operator."""
    return is_stateful(node) or isinstance(node.operation, Repartition | JoinWindowed)


def _leaves_below(node: Node, found: dict[Node, None] | None = None) -> dict[Node, None]:
    found = {} if found is None else found
    for child in node.children:
        if isinstance(child.operation, Repartition):
            found[child] = None
        elif not _is_end(child):
            if is_leaf(child):
                found[child] = None
            _leaves_below(child, found)
    return found


def _stateless(nodes: Sequence[Node]) -> list[Stage]:
    """Return the stages without an operator. Origins that share a leaf belong to one stage."""
    origins = [
        node
        for node in nodes
        if isinstance(node.operation, Source | Repartition)
        or (isinstance(node.operation, TableSource) and not node.operation.is_global)
    ]
    found = {origin: _leaves_below(origin) for origin in origins}
    groups = connected_groups({origin: leaves for origin, leaves in found.items() if leaves})
    return [
        Stage(
            members[0].name,
            None,
            (),
            tuple(_chain(origin, list(_leaves_below(origin))) for origin in members),
            None,
        )
        for members, _ in groups
    ]


def connected_groups(nodes: Mapping[Node, Iterable[Node]]) -> list[tuple[list[Node], list[Node]]]:
    """Group nodes that share related nodes, directly or transitively. Return the members of each group, and
    the nodes they are related to."""
    groups: list[tuple[list[Node], list[Node]]] = []
    for node, given in nodes.items():
        members, others = [node], list(given)
        for group in [each for each in groups if set(each[1]) & set(others)]:
            groups.remove(group)
            members, others = group[0] + members, list(dict.fromkeys([*group[1], *others]))
        groups.append((members, others))
    return groups


def _stateful(node: Node) -> Stage:
    leaves = list(_leaves_below(node))
    if written_by_operator(node):
        leaves.insert(0, node)
    on_close = isinstance(node.operation, Aggregate) and node.operation.on_close
    return Stage(node.name, node, _ports(node), (), _chain(node, leaves), on_close)


def _ports(node: Node) -> tuple[tuple[Chain, ...], ...]:
    return tuple(
        tuple(
            Chain(origin, (), (port,)) if origin is port else _chain(origin, [port])
            for origin in _origins(port)
        )
        for port in node.ports
    )


def _window_end(suppress: Node) -> Stage:
    """Return the stage that runs the aggregate above a `suppress` and emits only final results."""
    path = [suppress]
    while not isinstance(path[-1].operation, Aggregate):
        above = path[-1].ports[0]
        if is_stateful(above) and not isinstance(above.operation, Aggregate):
            raise TopologyException(
                f"{suppress.name} suppresses updates until windows close, but {above.name} is between it and "
                "the windowed aggregate"
            )
        path.append(above)
    aggregate = path.pop()
    below = _chain(suppress, [*_leaves_below(suppress), *([suppress] if any(_consumers(suppress)) else [])])
    after = Chain(aggregate, (*reversed(path), *below.nodes), below.leaves)
    return Stage(suppress.name, aggregate, _ports(aggregate), (), after, final=True)


def final_only_consumers(node: Node) -> list[Node]:
    """Return the `suppress` operators that consume an aggregate's final results, if no operator consumes its
    updates before windows close."""
    if not isinstance(node.operation, Aggregate) or (node.store is not None and node.store.queryable):
        return []
    ends = [*_consumers(node), *_leaves_below(node)]
    waiting = all(isinstance(end.operation, Suppress) and end.operation.limit_ms is None for end in ends)
    return ends if waiting else []
