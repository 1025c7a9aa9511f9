"""A map being changed while the one it came from stays as it is; copied once, and only if it changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class MapChanges(Generic[K, V]):
    __slots__ = ("_base", "changes")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        #: What became of each key that was touched; None when it was removed.
        self.changes: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        if key in self.changes:
            return self.changes[key]
        return self._base.get(key)

    def set(self, key: K, value: V) -> None:
        self.changes[key] = value

    def remove(self, key: K) -> None:
        self.changes[key] = None

    def result(self) -> Mapping[K, V]:
        if not self.changes:
            return self._base
        merged = dict(self._base)
        for key, value in self.changes.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged
