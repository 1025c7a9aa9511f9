"""A topology cut into stages. A stage is one Spark query: topics, a chain, at most one operator, a chain,
topics.

*Origins* are where chains begin: source topics, repartition topics, and what an earlier stage's operator has
written (the changelog of its table, or a topic made for the cut). *Leaves* are where rows leave: sinks,
repartition topics, changelogs, and actions that only look. Between them are steps without state, which a
chain repeats for every origin that reaches them: nothing is shared between stages but topics.

A window's last result (`suppress`) is computed by its aggregate itself: the stage of a suppress is that
aggregate once more, saying nothing before windows close.
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
class Leg:
    """From one origin to some leaves (or to one input of an operator), over the nodes between them."""

    origin: Node
    nodes: tuple[Node, ...]
    leaves: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """`ports` are the operator's inputs; without an operator the legs of `before` lead to the leaves at
    once."""

    name: str
    operator: Node | None
    ports: tuple[tuple[Leg, ...], ...]
    before: tuple[Leg, ...]
    after: Leg | None
    #: The operator says nothing before its windows close.
    final: bool = False

    @property
    def origins(self) -> tuple[Node, ...]:
        legs = [leg for port in self.ports for leg in port] + list(self.before)
        return tuple(dict.fromkeys(leg.origin for leg in legs))

    @property
    def leaves(self) -> tuple[Node, ...]:
        legs = [*self.before, *([] if self.after is None else [self.after])]
        return tuple(dict.fromkeys(leaf for leg in legs for leaf in leg.leaves))


def stages(nodes: Sequence[Node]) -> tuple[Stage, ...]:
    """All stages of a topology, each after those whose topics it reads."""
    made = [*_stateless(nodes)]
    for node in nodes:
        if not is_stateful(node):
            continue
        if isinstance(node.operation, Suppress) and node.operation.limit_ms is None:
            made.append(_window_end(node))
        elif not only_suppressed_by(node):
            made.append(_stateful(node))
    return tuple(stage for level in levels(made) for stage in level)


def levels(made: Sequence[Stage]) -> list[list[Stage]]:
    """The stages that can run at the same time, each level behind those that write what it reads."""
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
    """Whether rows leave a chain here, though some may also go on."""
    if isinstance(node.operation, Sink | Repartition | ForEach | Print | ToTable):
        return True
    return is_kept(node) and not isinstance(node.operation, TableSource)


def written_by_operator(node: Node) -> bool:
    """Whether an operator's own rows go to a topic: its table's changelog, or a cut for operators behind
    it."""
    if not is_stateful(node):
        return False
    return is_kept(node) or any(_consumers(node))


def _consumers(node: Node) -> Iterable[Node]:
    """The stateful operators that read what leaves a node, over steps without state."""
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


def _leg(origin: Node, leaves: Sequence[Node]) -> Leg:
    """The nodes on the ways from an origin to leaves, in the order of the program."""
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
    return Leg(
        origin, tuple(reversed(nodes)), tuple(leaf for leaf in leaves if leaf in nodes or leaf is origin)
    )


def _is_end(node: Node) -> bool:
    """Where a chain cannot go on: a topic or an operator with state is next."""
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
    """Sources and what is done with their records without state; those that meet in a leaf are one stage."""
    begins = [
        node
        for node in nodes
        if isinstance(node.operation, Source | Repartition)
        or (isinstance(node.operation, TableSource) and not node.operation.is_global)
    ]
    led = {origin: _leaves_below(origin) for origin in begins}
    groups = meeting({origin: leaves for origin, leaves in led.items() if leaves})
    return [
        Stage(
            members[0].name,
            None,
            (),
            tuple(_leg(origin, list(_leaves_below(origin))) for origin in members),
            None,
        )
        for members, _ in groups
    ]


def meeting(nodes: Mapping[Node, Iterable[Node]]) -> list[tuple[list[Node], list[Node]]]:
    """Nodes that have one of their others in common, directly or over further ones, and all their others."""
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
    return Stage(node.name, node, _ports(node), (), _leg(node, leaves), on_close)


def _ports(node: Node) -> tuple[tuple[Leg, ...], ...]:
    return tuple(
        tuple(
            Leg(origin, (), (port,)) if origin is port else _leg(origin, [port]) for origin in _origins(port)
        )
        for port in node.ports
    )


def _window_end(suppress: Node) -> Stage:
    """The aggregate above a suppress, only with its last results."""
    way = [suppress]
    while not isinstance(way[-1].operation, Aggregate):
        above = way[-1].ports[0]
        if is_stateful(above) and not isinstance(above.operation, Aggregate):
            raise TopologyException(
                f"{suppress.name} waits for windows to close, but {above.name} is before its aggregate"
            )
        way.append(above)
    aggregate = way.pop()
    below = _leg(suppress, [*_leaves_below(suppress), *([suppress] if any(_consumers(suppress)) else [])])
    after = Leg(aggregate, (*reversed(way), *below.nodes), below.leaves)
    return Stage(suppress.name, aggregate, _ports(aggregate), (), after, final=True)


def only_suppressed_by(node: Node) -> list[Node]:
    """Those that wait for an aggregate's windows to close, if nobody sees its updates before that."""
    if not isinstance(node.operation, Aggregate) or (node.store is not None and node.store.queryable):
        return []
    ends = [*_consumers(node), *_leaves_below(node)]
    waiting = all(isinstance(end.operation, Suppress) and end.operation.limit_ms is None for end in ends)
    return ends if waiting else []
