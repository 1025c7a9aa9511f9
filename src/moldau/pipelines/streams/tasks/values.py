"""A value and its timestamp in one piece of state: eight bytes of milliseconds, then the value."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from moldau.pipelines.streams.tasks.task import StateMap

_TIMESTAMP = Struct(">q")


@dataclass(frozen=True, slots=True)
class Timestamped:
    value: bytes | None
    timestamp: int


_NOTHING = Timestamped(None, -1)


class TimestampedMap:
    """The latest value of each key with its timestamp; None deletes."""

    def __init__(self, state: StateMap) -> None:
        self._state = state

    def get(self, key: bytes) -> Timestamped:
        """A key that is not there has no value, and a timestamp before all others."""
        found = self._state.get(key)
        if found is None:
            return _NOTHING
        return Timestamped(found[_TIMESTAMP.size :], _TIMESTAMP.unpack_from(found)[0])

    def swap(self, key: bytes, value: bytes | None, timestamp: int) -> bytes | None:
        """Put, and say which value was there before."""
        before = self.get(key).value
        self.put(key, value, timestamp)
        return before

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if value is None:
            self._state.delete(key)
        else:
            self._state.put(key, _TIMESTAMP.pack(timestamp) + value)
