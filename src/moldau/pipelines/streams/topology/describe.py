"""The text that Java's `Topology.describe()` prints for the same program.

The graph is first expanded to Java's lowest level of sources, processors and sinks: a repartition is a
filter, a sink and a source, a stream-stream join is five processors. Nodes that are connected or share a
store form a sub-topology. Where Java's text follows the iteration order of its hash sets, so does ours
(`java_order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moldau.pipelines.streams.topology.graph import Node, TableStore
from moldau.pipelines.streams.topology.java_sets import TreeSet, java_order
from moldau.pipelines.streams.topology.operations import (
    Repartition,
    Sink,
    Source,
    TableFilter,
    TableMapValues,
    TableSource,
    ToTable,
)
from moldau.pipelines.streams.topology.stateful import (
    Aggregate,
    ForeignKeyJoin,
    ForeignKeyLookup,
    JoinWindowed,
    Process,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableTableJoin,
)


@dataclass(slots=True)
class Entry:
    """A source, processor or sink. `size` counts its descendants, once for every path to them."""

    kind: str
    name: str
    above: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    detail: str = ""
    is_global: bool = False
    size: int = 1
    predecessors: TreeSet[Entry] = field(default_factory=lambda: TreeSet(_rank))
    successors: TreeSet[Entry] = field(default_factory=lambda: TreeSet(_rank))

    def text(self) -> str:
        after = f"--> {_names(self.successors)}"
        before = f"<-- {_names(self.predecessors)}"
        if self.kind == "Source":
            return f"Source: {self.name} (topics: {self.detail})\n      {after}"
        if self.kind == "Sink":
            return f"Sink: {self.name} ({self.detail})\n      {before}"
        stores = f"[{', '.join(java_order(self.stores))}]"
        return f"Processor: {self.name} (stores: {stores})\n      {after}\n      {before}"


def description(nodes: Iterable[Node]) -> str:
    entries = [entry for node in nodes for entry in expanded(node)]
    text = "Topologies:\n "
    for number, group in enumerate(_groups(entries)):
        text += f"  {_global_store(number, group) if group[0].is_global else _subtopology(number, group)}"
    return text


def expanded(node: Node) -> Iterator[Entry]:
    """Expand a node to the sources, processors and sinks of Java's lowest level."""
    operation = node.operation
    above = tuple(parent.name for parent in node.parents)
    match operation:
        case Source():
            topics = f"[{', '.join(java_order(operation.topics))}]"
            yield Entry("Source", node.name, detail=operation.pattern or topics)
        case TableSource():
            source = operation.source_name
            yield Entry("Source", source, detail=f"[{operation.topic}]", is_global=operation.is_global)
            stores = _materialized(operation.store)
            yield Entry("Processor", node.name, (source,), stores, is_global=operation.is_global)
        case Repartition():
            if operation.filter_name is not None:
                yield Entry("Processor", operation.filter_name, above)
                above = (operation.filter_name,)
            above = operation.written_by or above
            yield Entry("Sink", operation.sink_name, above, detail=f"topic: {operation.topic}")
            yield Entry("Source", operation.source_name, detail=f"[{operation.topic}]")
        case Sink():
            where = operation.topic
            detail = f"extractor class: {operation.extractor}" if where is None else f"topic: {where}"
            yield Entry("Sink", node.name, above, detail=detail)
        case StreamStreamJoin():
            yield from _stream_join(node.name, operation)
        case TableTableJoin():
            yield from _table_join(node.name, operation)
        case ForeignKeyLookup(receive=receive, store_name=store):
            yield Entry("Processor", receive, above[:1], (store,))
            yield Entry("Processor", node.name, (receive,), tuple(operation.table_stores))
            yield Entry("Processor", operation.changed, (operation.table_name,), (store,))
        case ForeignKeyJoin(resolver=resolver):
            yield Entry("Processor", resolver, above, tuple(operation.table_stores))
            yield Entry("Processor", node.name, (resolver,), _materialized(operation.store))
        case Aggregate(processors=processors) if processors:
            for processor, port in zip(processors, node.ports, strict=True):
                yield Entry("Processor", processor, (port.name,), (operation.store.name,))
            yield Entry("Processor", node.name, processors)
        case JoinWindowed():
            yield Entry("Processor", operation.processor, above, (operation.store_name,))
        case _:
            yield Entry("Processor", node.name, above, _stores(node))


def _stores(node: Node) -> tuple[str, ...]:
    match node.operation:
        case Aggregate(store=store) | TableAggregate(store=store):
            return (store.name,)
        case ToTable(store=store):
            return _materialized(store)
        case TableFilter(store=store) | TableMapValues(store=store):
            return () if store is None else (store.name,)
        case Suppress(store_name=name):
            return (name,)
        case StreamTableJoin(table_stores=names):
            return tuple(names)
        case Process(store_names=names):
            return names if node.store is None else (*names, node.store.name)
    return ()


def _materialized(store: TableStore) -> tuple[str, ...]:
    return (store.name,) if store.materialized else ()


def _stream_join(name: str, join: StreamStreamJoin) -> Iterator[Entry]:
    outer = () if join.outer_store is None else (join.outer_store,)
    yield Entry("Processor", join.this_join, (join.this_windowed,), (join.other_store, *outer))
    yield Entry("Processor", join.other_join, (join.other_windowed,), (join.this_store, *outer))
    yield Entry("Processor", name, (join.this_join, join.other_join))


def _table_join(name: str, join: TableTableJoin) -> Iterator[Entry]:
    yield Entry("Processor", join.this_join, (join.this_name,), tuple(join.other_stores))
    yield Entry("Processor", join.other_join, (join.other_name,), tuple(join.this_stores))
    stores = () if join.store is None else (join.store.name,)
    yield Entry("Processor", name, (join.this_join, join.other_join), stores)


def _groups(entries: list[Entry]) -> list[list[Entry]]:
    """Return the sub-topologies in the order of their first entries."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for entry in entries:
        # Shared stores also connect entries; the slash distinguishes a store from a node of that name.
        for other in (*entry.above, *(f"store/{store}" for store in entry.stores)):
            root[find(other)] = find(entry.name)
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(find(entry.name), []).append(entry)
    return list(groups.values())


def _subtopology(number: int, group: list[Entry]) -> str:
    _connect(group)
    in_order = sorted(group, key=_rank)
    lines = "".join(f"    {entry.text()}\n" for entry in in_order)
    return f"Sub-topology: {number}\n{lines}\n"


def _global_store(number: int, group: list[Entry]) -> str:
    _connect(group)
    lines = "".join(f"    {entry.text()}\n" for entry in group)
    return f"Sub-topology: {number} for global store (will not generate tasks)\n{lines}"


def _connect(group: list[Entry]) -> None:
    """Connect entries in the iteration order of Java's map, because neighbours are sorted by their sizes so
    far."""
    by_name = {entry.name: entry for entry in group}
    for name in java_order(java_order(by_name)):
        entry = by_name[name]
        for above in entry.above:
            other = by_name[above]
            entry.predecessors.add(other)
            other.successors.add(entry)
            _grow(other, entry.size)


def _grow(entry: Entry, size: int) -> None:
    entry.size += size
    for above in entry.predecessors:
        _grow(above, size)


def _rank(entry: Entry) -> tuple[int, str]:
    return -entry.size, entry.name


def _names(entries: Iterable[Entry]) -> str:
    return ", ".join(entry.name for entry in entries) or "none"
