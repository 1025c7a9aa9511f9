"""Stores as others read them while the program runs: interactive queries.

    counts = streams.store("counts")
    counts.get("alice"), dict(counts.all()), list(counts.range("a", "b"))

A store is read from its changelog topic, so it can be asked anywhere, also when the program does not run, and
shows what is committed and nothing else. The names are those of Kafka Streams' read-only stores; iterating
goes by the order of the keys' bytes, then by time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.streams.application.topic_table import Rows, Split, TopicTable, WindowOf
from moldau.pipelines.streams.dsl.serdes import Serde, Window, Windowed
from moldau.pipelines.streams.dsl.stores import StoreKind

#: Behind the start is Kafka's number of records of the same time, which is zero.
_START = Struct(">qi")
_END_AND_START = Struct(">qq")
_NO_WINDOW = (0, 0)


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where a store's changelog is, and how to read it; the serdes are those of plain keys and values."""

    name: str
    topic: str
    kind: StoreKind
    key_serde: Serde
    value_serde: Serde
    window_size_ms: int = 0

    def split(self) -> Split:
        if self.kind == "key-value":
            return lambda key: (key, _NO_WINDOW)
        if self.kind == "session":
            return lambda key: (key[:-16], _END_AND_START.unpack(key[-16:]))
        return self._split_window

    def _split_window(self, key: bytes) -> tuple[bytes, WindowOf]:
        start, _ = _START.unpack(key[-_START.size :])
        return key[: -_START.size], (start + self.window_size_ms, start)


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

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, dict[WindowOf, bytes]]]:
        """The rows of keys from one to the other, both included; None is an open end."""
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
        """Keys whose bytes begin so."""
        for key, values in self._between(None, None):
            if key.startswith(prefix):
                yield self._key_object(key), self._object(values[_NO_WINDOW])

    def approximate_num_entries(self) -> int:
        return len(self._rows())


class ReadOnlyWindowStore(_ReadOnlyStore):
    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """The value of the window that starts at a time; or, with `time_to`, the pairs of start and value of
        all that start between the two."""
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
        """The sessions of a key, or of all keys from one to another."""
        for data, windows in self._between(key, key if last is None else last):
            for (end, start), value in sorted(windows.items()):
                yield Windowed(self._key_object(data), Window(start, end)), self._object(value)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        return self._object(self._rows().get(self._key(key), {}).get((end, start)))

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """Those that end no earlier and start no later."""
        for session, value in self.fetch(key):
            if session.window.end >= earliest_end and session.window.start <= latest_start:
                yield session, value


ReadOnlyStore = ReadOnlyKeyValueStore | ReadOnlyWindowStore | ReadOnlySessionStore
_KINDS: dict[str, type[ReadOnlyKeyValueStore] | type[ReadOnlyWindowStore] | type[ReadOnlySessionStore]] = {
    "key-value": ReadOnlyKeyValueStore,
    "window": ReadOnlyWindowStore,
    "session": ReadOnlySessionStore,
}


def open_readonly(settings: ClientSettings, location: StoreLocation) -> ReadOnlyStore:
    table = TopicTable(settings, location.topic, location.split())
    return _KINDS[location.kind](location, table)
