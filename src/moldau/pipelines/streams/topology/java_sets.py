"""The orders in which Java goes through its sets, where the text of a description follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar


def java_order(names: Iterable[str]) -> list[str]:
    """The order in which Java's `HashSet` of these strings is iterated."""
    unique = list(dict.fromkeys(names))
    buckets = 16
    while len(unique) > buckets * 3 // 4:
        buckets *= 2
    return sorted(unique, key=lambda name: _spread_hash(name) & (buckets - 1))


def _spread_hash(text: str) -> int:
    value = 0
    for unit in _units(text):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _units(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]


T = TypeVar("T")


class _Twig(Generic[T]):
    __slots__ = ("left", "parent", "red", "right", "value")

    def __init__(self, value: T, parent: _Twig[T] | None) -> None:
        self.value = value
        self.parent = parent
        self.left: _Twig[T] | None = None
        self.right: _Twig[T] | None = None
        self.red = True


class TreeSet(Generic[T]):
    """Java's `TreeSet`: a red-black tree. Where what it sorts by changes after things were added, their order
    is that of the tree, which depends on how it grew."""

    def __init__(self, key: Callable[[T], Any]) -> None:
        self._key = key
        self._root: _Twig[T] | None = None

    def __iter__(self) -> Iterator[T]:
        return self._below(self._root)

    def add(self, value: T) -> None:
        above, below, wanted = None, self._root, self._key(value)
        while below is not None:
            above, there = below, self._key(below.value)
            if wanted == there:
                return
            below = below.left if wanted < there else below.right
        twig = _Twig(value, above)
        if above is None:
            self._root = twig
        elif wanted < self._key(above.value):
            above.left = twig
        else:
            above.right = twig
        self._balance(twig)

    def _below(self, twig: _Twig[T] | None) -> Iterator[T]:
        if twig is not None:
            yield from self._below(twig.left)
            yield twig.value
            yield from self._below(twig.right)

    def _balance(self, twig: _Twig[T]) -> None:
        while (parent := twig.parent) is not None and parent.red and parent.parent is not None:
            above = parent.parent
            left = parent is above.left
            uncle = above.right if left else above.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                above.red = True
                twig = above
                continue
            if twig is (parent.right if left else parent.left):
                twig = parent
                self._rotate(twig, to_left=left)
                parent = twig.parent or twig
            parent.red, above.red = False, True
            self._rotate(above, to_left=not left)
        if self._root is not None:
            self._root.red = False

    def _rotate(self, twig: _Twig[T], *, to_left: bool) -> None:
        """The child of the other side takes the twig's place."""
        child = twig.right if to_left else twig.left
        if child is None:
            return
        between = child.left if to_left else child.right
        if to_left:
            twig.right, child.left = between, twig
        else:
            twig.left, child.right = between, twig
        if between is not None:
            between.parent = twig
        child.parent = twig.parent
        if twig.parent is None:
            self._root = child
        elif twig is twig.parent.left:
            twig.parent.left = child
        else:
            twig.parent.right = child
        twig.parent = child
