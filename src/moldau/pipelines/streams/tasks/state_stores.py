"""The state stores of a running processor: Kafka Streams' key-value, window and session stores over a task's
state.

The windows or sessions of a key are stored as one entry, so that reading them takes one look-up. `changes`
returns the last change of each changelog key in a batch. A changelog key is the key; the key, the window's
start and a sequence number that is always zero; or the key, the session's end and the session's start.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from struct import Struct
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Window, Windowed
from moldau.pipelines.streams.dsl.stores import StoreBuilder
from moldau.pipelines.streams.tasks.state import StateMap

_START = Struct(">qi")
_END_AND_START = Struct(">qq")


class _Store:
    def __init__(self, definition: StoreBuilder, state: StateMap) -> None:
        self.definition = definition
        self._state = state
        self._changed: dict[bytes, bytes | None] = {}

    @property
    def name(self) -> str:
        return self.definition.name

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the changed changelog keys with their new values."""
        return self._changed

    def _key(self, key: Any) -> bytes:
        data = self.definition.key_serde.serialize(self.name, key)
        if data is None:
            raise ValueError(f"{self.name}: a key must not be None")
        return data

    def _key_object(self, data: bytes) -> Any:
        return self.definition.key_serde.deserialize(self.name, data)

    def _value(self, value: Any) -> bytes | None:
        return self.definition.value_serde.serialize(self.name, value)

    def _object(self, data: bytes | None) -> Any:
        return self.definition.value_serde.deserialize(self.name, data)


class KeyValueStore(_Store):
    """One value for each key. Iteration is ordered by the serialized keys."""

    def get(self, key: Any) -> Any:
        return self._object(self._state.get(self._key(key)))

    def put(self, key: Any, value: Any) -> None:
        """Store a value; None deletes the key."""
        data, stored = self._key(key), self._value(value)
        self._changed[data] = stored
        if stored is None:
            self._state.delete(data)
        else:
            self._state.put(data, stored)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        there = self.get(key)
        if there is None:
            self.put(key, value)
        return there

    def delete(self, key: Any) -> Any:
        before = self.get(key)
        self.put(key, None)
        return before

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range(None, None)

    def range(self, start: Any, end: Any) -> Iterator[tuple[Any, Any]]:
        """Return the entries of a range. Both ends are inclusive; None is an open end."""
        first = b"" if start is None else self._key(start)
        last = None if end is None else self._key(end)
        for key, value in sorted(self._state.items()):
            if key >= first and (last is None or key <= last):
                yield self._key_object(key), self._object(value)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        for key, value in sorted(self._state.items()):
            if key.startswith(prefix):
                yield self._key_object(key), self._object(value)

    def approximate_num_entries(self) -> int:
        return sum(1 for _ in self._state.items())


class _WindowsOfKeys(_Store):
    """The windows of each key by (end, start). Windows are dropped when their retention has passed."""

    def _windows(self, key: bytes) -> dict[tuple[int, int], bytes]:
        stored = self._state.get(key)
        return {} if stored is None else pickle.loads(stored)

    def _write(self, key: bytes, window: tuple[int, int], value: bytes | None) -> None:
        windows = self._windows(key)
        windows.pop(window, None)
        if value is not None:
            windows[window] = value
        newest = max((end for end, _ in windows), default=0)
        kept = {each: windows[each] for each in windows if each[0] > newest - self.definition.retention_ms}
        if kept:
            self._state.put(key, pickle.dumps(kept))
        else:
            self._state.delete(key)

    def _everything(self) -> Iterator[tuple[bytes, tuple[int, int], bytes]]:
        for key, stored in sorted(self._state.items()):
            for window, value in sorted(pickle.loads(stored).items(), key=lambda each: each[0][1]):
                yield key, window, value


class WindowStore(_WindowsOfKeys):
    """The values of each key by the start of the window."""

    def put(self, key: Any, value: Any, window_start: int) -> None:
        data, stored = self._key(key), self._value(value)
        self._changed[data + _START.pack(window_start, 0)] = stored
        self._write(data, (window_start + self.definition.window_size_ms, window_start), stored)

    def fetch(self, key: Any, time_from: int, time_to: int | None = None) -> Any:
        """Return the value of the window that starts at `time_from`; with `time_to`, the (start, value) pairs
        of the windows that start in the range."""
        windows = self._windows(self._key(key))
        if time_to is None:
            return self._object(windows.get((time_from + self.definition.window_size_ms, time_from)))
        starts = sorted((start, value) for (_, start), value in windows.items())
        return iter([(start, self._object(v)) for start, v in starts if time_from <= start <= time_to])

    def fetch_all(self, time_from: int, time_to: int) -> Iterator[tuple[Windowed, Any]]:
        return (each for each in self.all() if time_from <= each[0].window.start <= time_to)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        for key, (end, start), value in self._everything():
            yield Windowed(self._key_object(key), Window(start, end)), self._object(value)


class SessionStore(_WindowsOfKeys):
    """The values of each key by session, which lasts from its first to its last record."""

    def put(self, session: Windowed, value: Any) -> None:
        data, stored = self._key(session.key), self._value(value)
        window = (session.window.end, session.window.start)
        self._changed[data + _END_AND_START.pack(*window)] = stored
        self._write(data, window, stored)

    def remove(self, session: Windowed) -> None:
        self.put(session, None)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        return self._object(self._windows(self._key(key)).get((end, start)))

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        return self.find_sessions(key, 0, 2**63 - 1)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """Return the sessions that end at `earliest_end` or later and start at `latest_start` or earlier."""
        for (end, start), value in sorted(self._windows(self._key(key)).items()):
            if end >= earliest_end and start <= latest_start:
                yield Windowed(key, Window(start, end)), self._object(value)


StateStore = KeyValueStore | WindowStore | SessionStore
_KINDS: dict[str, type[KeyValueStore] | type[WindowStore] | type[SessionStore]] = {
    "key-value": KeyValueStore,
    "window": WindowStore,
    "session": SessionStore,
}


def open_store(definition: StoreBuilder, state: StateMap) -> StateStore:
    return _KINDS[definition.kind](definition, state)
