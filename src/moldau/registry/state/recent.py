"""Results of expensive functions that were used recently, bounded in number and in size of their texts.

Threads may use it at the same time: large schemas are parsed and compared in a thread first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    def __init__(self, most: int, largest: int) -> None:
        """Keep at most `most` results, whose sizes are at most `largest` together, or one larger result."""
        self._most = most
        self._largest = largest
        self._size = 0
        self._results: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        with self._lock:
            found = self._results.get(key)
            if found is None:
                return None
            self._results.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, result: V, size: int) -> None:
        with self._lock:
            previous = self._results.pop(key, None)
            self._size += size - (0 if previous is None else previous[1])
            self._results[key] = (result, size)
            while len(self._results) > self._most or (self._size > self._largest and len(self._results) > 1):
                _, (_, removed) = self._results.popitem(last=False)
                self._size -= removed

    def __len__(self) -> int:
        return len(self._results)
