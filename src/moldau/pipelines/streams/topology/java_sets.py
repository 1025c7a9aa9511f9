"""The iteration orders of Java's `HashSet` and `TreeSet`, which topology descriptions depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar


def java_order(names: Iterable[str]) -> list[str]:
    """Return the strings in the iteration order of Java's `HashSet`."""
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


class _TreeNode(Generic[T]):
    __slots__ = ("left", "parent", "red", "right", "value")

    def __init__(self, value: T, parent: _TreeNode[T] | None) -> None:
        self.value = value
        self.parent = parent
        self.left: _TreeNode[T] | None = None
        self.right: _TreeNode[T] | None = None
        self.red = True


class TreeSet(Generic[T]):
    """Java's `TreeSet`, a red-black tree. If sort keys change after insertion, as they do in descriptions,
    the iteration order depends on the shape of the tree."""

    def __init__(self, key: Callable[[T], Any]) -> None:
        self._key = key
        self._root: _TreeNode[T] | None = None

    def __iter__(self) -> Iterator[T]:
        return self._below(self._root)

    def add(self, value: T) -> None:
        above, below, wanted = None, self._root, self._key(value)
        while below is not None:
            above, there = below, self._key(below.value)
            if wanted == there:
                return
            below = below.left if wanted < there else below.right
        node = _TreeNode(value, above)
        if above is None:
            self._root = node
        elif wanted < self._key(above.value):
            above.left = node
        else:
            above.right = node
        self._balance(node)

    def _below(self, node: _TreeNode[T] | None) -> Iterator[T]:
        if node is not None:
            yield from self._below(node.left)
            yield node.value
            yield from self._below(node.right)

    def _balance(self, node: _TreeNode[T]) -> None:
        while (parent := node.parent) is not None and parent.red and parent.parent is not None:
            above = parent.parent
            left = parent is above.left
            uncle = above.right if left else above.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                above.red = True
                node = above
                continue
            if node is (parent.right if left else parent.left):
                node = parent
                self._rotate(node, to_left=left)
                parent = node.parent or node
            parent.red, above.red = False, True
            self._rotate(above, to_left=not left)
        if self._root is not None:
            self._root.red = False

    def _rotate(self, node: _TreeNode[T], *, to_left: bool) -> None:
        """Rotate the subtree: the child on the other side takes the place of `node`."""
        child = node.right if to_left else node.left
        if child is None:
            return
        between = child.left if to_left else child.right
        if to_left:
            node.right, child.left = between, node
        else:
            node.left, child.right = between, node
        if between is not None:
            between.parent = node
        child.parent = node.parent
        if node.parent is None:
            self._root = child
        elif node is node.parent.left:
            node.parent.left = child
        else:
            node.parent.right = child
        node.parent = child
