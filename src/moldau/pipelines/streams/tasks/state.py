"""The state of tasks: maps from bytes to bytes, cached for a batch, and maps of values with timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

_TIMESTAMP = Struct(">q")


class StateMap(Protocol):
    """A named map of a task's state."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """Return all entries, in any order."""


class StateStore(Protocol):
    """The storage of a map, for many keys at a time."""

    def get(self, key: bytes) -> bytes | None: ...

    def items(self) -> Iterable[tuple[bytes, bytes]]: ...

    def read(self, keys: Iterable[bytes]) -> Mapping[bytes, bytes | None]:
        """Return the values of many keys."""

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put the values of many keys; None deletes a key."""


class CachedMap:
    """Caches a map for a batch: each key is read at most once, and written once by `flush`."""

    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._known: dict[bytes, bytes | None] = {}
        self._changed: set[bytes] = set()

    def load(self, keys: Iterable[bytes]) -> None:
        """Read keys that will be used."""
        self._known.update(self._state.read(keys))

    def get(self, key: bytes) -> bytes | None:
        if key not in self._known:
            self._known[key] = self._state.get(key)
        return self._known[key]

    def put(self, key: bytes, value: bytes) -> None:
        self._known[key] = value
        self._changed.add(key)

    def delete(self, key: bytes) -> None:
        self._known[key] = None
        self._changed.add(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        merged = {**dict(self._state.items()), **self._known}
        return iter([(key, value) for key, value in merged.items() if value is not None])

    def flush(self) -> None:
        self._state.write({key: self._known[key] for key in self._changed})
        self._changed.clear()


class MemoryMap(dict[bytes, bytes]):
    """State in memory."""

    def put(self, key: bytes, value: bytes) -> None:
        self[key] = value

    def delete(self, key: bytes) -> None:
        self.pop(key, None)

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
        return {key: self.get(key) for key in keys}

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in sorted(changes.items()):
            self.delete(key) if value is None else self.put(key, value)


@dataclass(frozen=True, slots=True)
class Timestamped:
    """A value and its timestamp."""

    value: bytes | None
    timestamp: int


_MISSING = Timestamped(None, -1)


class TimestampedMap:
    """The latest value of each key with its timestamp, stored as eight bytes of milliseconds and the value. A
    value of None deletes the key."""

    def __init__(self, state: StateMap) -> None:
        self._state = state

    def get(self, key: bytes) -> Timestamped:
        """Return the entry of a key. A missing key has no value and the timestamp -1."""
        found = self._state.get(key)
        if found is None:
            return _MISSING
        return Timestamped(found[_TIMESTAMP.size :], _TIMESTAMP.unpack_from(found)[0])

    def swap(self, key: bytes, value: bytes | None, timestamp: int) -> bytes | None:
        """Put a value, and return the previous one."""
        before = self.get(key).value
        self.put(key, value, timestamp)
        return before

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if value is None:
            self._state.delete(key)
        else:
            self._state.put(key, _TIMESTAMP.pack(timestamp) + value)
