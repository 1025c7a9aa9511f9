"""A bounded cache of what is computed once per schema."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SchemaCache(Generic[K, V]):
    """Computes a value with the first use of its key; beyond the bound, the oldest value is dropped."""

    __slots__ = ("_compute", "_most", "_values")

    def __init__(self, compute: Callable[[K], V], most: int = 1000) -> None:
        self._compute = compute
        self._most = most
        self._values: dict[K, V] = {}

    def __call__(self, key: K) -> V:
        try:
            return self._values[key]
        except KeyError:
            pass
        if len(self._values) >= self._most > 0:
            del self._values[next(iter(self._values))]
        value = self._values[key] = self._compute(key)
        return value
