"""Which store a name means, and where it is: the changelog of a table or of a processor's store."""

from __future__ import annotations

from moldau.pipelines.streams.application.readonly_stores import StoreLocation
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.serdes import inner_serde
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.dsl.windows import SlidingWindows, TimeWindows
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.topology.graph import Node, TableStore
from moldau.pipelines.streams.topology.stateful import Suppress
from moldau.pipelines.streams.topology.topology import Topology


def store_location(topology: Topology, settings: StreamsSettings, name: str) -> StoreLocation:
    """A table is read from its changelog, one that is a topic already from that topic."""
    defined = topology.state_stores.get(name)
    if isinstance(defined, StoreBuilder):
        return _of_processor(defined, settings)
    for node in topology.nodes:
        if node.store is not None and node.store.name == name and not isinstance(node.operation, Suppress):
            return _of_table(node, node.store, settings)
    known = {*topology.state_stores, *(each.store.name for each in topology.nodes if each.store is not None)}
    raise StreamsException(
        f"There is no store {name!r}; the program has {', '.join(sorted(known)) or 'none'}"
    )


def _of_processor(store: StoreBuilder, settings: StreamsSettings) -> StoreLocation:
    if not store.logging:
        raise StreamsException(f"The store {store.name} has no changelog, so only its processor can read it")
    topic = settings.internal(f"{store.name}-changelog")
    return StoreLocation(
        store.name, topic, store.kind, store.key_serde, store.value_serde, store.window_size_ms
    )


def _of_table(node: Node, store: TableStore, settings: StreamsSettings) -> StoreLocation:
    planner = Planner(settings, {})
    serdes = planner.origin_serdes(node)
    topic = planner.topic_of(node) or settings.internal(store.changelog)
    windows = store.windows
    size_ms = windows.size_ms if isinstance(windows, TimeWindows | SlidingWindows) else 0
    return StoreLocation(store.name, topic, store.kind, inner_serde(serdes.key), serdes.value, size_ms)
