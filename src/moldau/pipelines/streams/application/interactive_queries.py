"""Interactive queries: state stores as other programs read them.

    counts = streams.store("counts")
    counts.get("alice"), dict(counts.all()), list(counts.range("a", "b"))

A store is read from its changelog topic, so it can be queried anywhere, even while the application is not
running, and shows committed data only. The methods are those of Kafka Streams' read-only stores. Iteration is
ordered by the serialized keys, then by time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from threading import Lock
from typing import Any

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.source.topic_follower import TopicFollower
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.serdes import Serde, Window, Windowed, inner_serde
from moldau.pipelines.streams.dsl.stores import StoreBuilder, StoreKind
from moldau.pipelines.streams.dsl.windows import SlidingWindows, TimeWindows
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node, TableStore
from moldau.pipelines.streams.topology.stateful import Suppress
from moldau.pipelines.streams.topology.topology import Topology

#: The end and start of a window; both are zero in a store without windows.
WindowBounds = tuple[int, int]
#: Splits a changelog key into key and window.
KeySplitter = Callable[[bytes], tuple[bytes, WindowBounds]]
Rows = Mapping[bytes, Mapping[WindowBounds, bytes]]

#: The window's start, and Kafka's sequence number of records with the same time, which is zero.
_START = Struct(">qi")
_END_AND_START = Struct(">qq")
_NO_WINDOW = (0, 0)


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """The changelog of a store, and how to read it. The serdes are those of plain keys and values."""

    name: str
    topic: str
    kind: StoreKind
    key_serde: Serde
    value_serde: Serde
    window_size_ms: int = 0

    def split(self) -> KeySplitter:
        if self.kind == "key-value":
            return lambda key: (key, _NO_WINDOW)
        if self.kind == "session":
            return lambda key: (key[:-16], _END_AND_START.unpack(key[-16:]))
        return self._split_window

    def _split_window(self, key: bytes) -> tuple[bytes, WindowBounds]:
        start, _ = _START.unpack(key[-_START.size :])
        return key[: -_START.size], (start + self.window_size_ms, start)


def store_location(topology: Topology, settings: StreamsSettings, name: str) -> StoreLocation:
    """Find a store by name. A table is read from its changelog, a source table from its topic."""
    defined = topology.state_stores.get(name)
    if isinstance(defined, StoreBuilder):
        return _of_processor(defined, settings)
    for node in topology.nodes:
        if node.store is not None and node.store.name == name and not isinstance(node.operation, Suppress):
            return _of_table(node, node.store, settings)
    known = {*topology.state_stores, *(each.store.name for each in topology.nodes if each.store is not None)}
    raise StreamsException(f"There is no store {name!r}; the stores are {', '.join(sorted(known)) or 'none'}")


def _of_processor(store: StoreBuilder, settings: StreamsSettings) -> StoreLocation:
    if not store.logging:
        raise StreamsException(f"Store {store.name} has no changelog: only its processor can read it")
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


class TopicTable:
    """A changelog topic as a table in memory: the latest committed value of every key."""

    def __init__(self, settings: ClientSettings, topic: str, split: KeySplitter) -> None:
        self._split = split
        self._rows: dict[bytes, dict[WindowBounds, bytes]] = {}
        self._follower = TopicFollower(settings, topic, self._read_batch, self._rows.clear)
        self._lock = Lock()

    def rows(self) -> Rows:
        """Return the values of every key by window, including everything committed before the call."""
        with self._lock:
            self._follower.catch_up()
            return self._rows

    def close(self) -> None:
        self._follower.close()

    def _read_batch(self, batch: Any) -> None:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        for key, value in zip(keys, values, strict=True):
            self._put(key, value)

    def _put(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            return
        inner, window = self._split(key)
        if value is not None:
            self._rows.setdefault(inner, {})[window] = value
            return
        windows = self._rows.get(inner, {})
        windows.pop(window, None)
        if not windows:
            self._rows.pop(inner, None)


class _ReadOnlyStore:
    def __init__(self, location: StoreLocation, table: TopicTable) -> None:
        self._location = location
        self._table = table

    @property
    def name(self) -> str:
        return self._location.name

    def close(self) -> None:
        self._table.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self) -> Rows:
        return self._table.rows()

    def _key(self, key: Any) -> bytes:
        data = self._location.key_serde.serialize(self._location.topic, key)
        if data is None:
            raise ValueError(f"{self.name}: a key must not be None")
        return data

    def _key_object(self, data: bytes) -> Any:
        return self._location.key_serde.deserialize(self._location.topic, data)

    def _object(self, data: bytes | None) -> Any:
        return self._location.value_serde.deserialize(self._location.topic, data)

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, dict[WindowBounds, bytes]]]:
        """Return the rows of a range of keys. Both ends are inclusive; None is an open end."""
        low = b"" if first is None else self._key(first)
        high = None if last is None else self._key(last)
        rows = sorted(self._rows().items())
        return [(key, dict(each)) for key, each in rows if key >= low and (high is None or key <= high)]


class ReadOnlyKeyValueStore(_ReadOnlyStore):
    def get(self, key: Any) -> Any:
        return self._object(self._rows().get(self._key(key), {}).get(_NO_WINDOW))

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range(None, None)

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self.all())[::-1])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        for key, values in self._between(first, last):
            yield self._key_object(key), self._object(values[_NO_WINDOW])

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Return the rows whose serialized keys start with the prefix."""
        for key, values in self._between(None, None):
            if key.startswith(prefix):
                yield self._key_object(key), self._object(values[_NO_WINDOW])

    def approximate_num_entries(self) -> int:
        return len(self._rows())


class ReadOnlyWindowStore(_ReadOnlyStore):
    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """Return the value of the window that starts at `time_from`; with `time_to`, the (start, value) pairs
        of the windows that start in the range."""
        windows = self._rows().get(self._key(key), {})
        if time_to is None:
            return self._object(windows.get((time_from + self._location.window_size_ms, time_from)))
        starts = sorted((start, value) for (_, start), value in windows.items())
        return iter([(start, self._object(v)) for start, v in starts if time_from <= start <= time_to])

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed, Any]]:
        return (each for each in self.all() if time_from <= each[0].window.start <= time_to)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        for key, windows in self._between(None, None):
            for (end, start), value in sorted(windows.items(), key=lambda each: each[0][1]):
                yield Windowed(self._key_object(key), Window(start, end)), self._object(value)


class ReadOnlySessionStore(_ReadOnlyStore):
    def fetch(self, key: Any, last: Any = None) -> Iterator[tuple[Windowed, Any]]:
        """Return the sessions of a key, or of a range of keys."""
        for data, windows in self._between(key, key if last is None else last):
            for (end, start), value in sorted(windows.items()):
                yield Windowed(self._key_object(data), Window(start, end)), self._object(value)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        return self._object(self._rows().get(self._key(key), {}).get((end, start)))

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """Return the sessions that end at `earliest_end` or later and start at `latest_start` or earlier."""
        for session, value in self.fetch(key):
            if session.window.end >= earliest_end and session.window.start <= latest_start:
                yield session, value


ReadOnlyStore = ReadOnlyKeyValueStore | ReadOnlyWindowStore | ReadOnlySessionStore
_KINDS: dict[str, type[ReadOnlyKeyValueStore] | type[ReadOnlyWindowStore] | type[ReadOnlySessionStore]] = {
    "key-value": ReadOnlyKeyValueStore,
    "window": ReadOnlyWindowStore,
    "session": ReadOnlySessionStore,
}


def open_store(settings: ClientSettings, location: StoreLocation) -> ReadOnlyStore:
    table = TopicTable(settings, location.topic, location.split())
    return _KINDS[location.kind](location, table)
