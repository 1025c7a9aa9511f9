"""A bounded cache: least recently used entries leave first, and entries may expire. Threads may share it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class BoundedCache:
    def __init__(self, capacity: int, clock: Callable[[], float]) -> None:
        self._capacity = max(1, capacity)
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, float | None]] = OrderedDict()

    def __reduce__(self) -> tuple[type[BoundedCache], tuple[int, Callable[[], float]]]:
        """Send a cache to another process: empty."""
        return (BoundedCache, (self._capacity, self._clock))

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any:
        """Return the entry, or None if there is none or it has expired."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            value, expiry = found
            if expiry is not None and self._clock() >= expiry:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: Any, seconds: float | None = None) -> None:
        """Keep an entry for this many seconds, or without limit."""
        with self._lock:
            self._entries[key] = (value, None if seconds is None else self._clock() + seconds)
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
