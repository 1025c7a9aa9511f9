"""The differences found between two schemas, as a tree that shares common parts.

Recursive schemas reach the same pair of schemas on many paths; the number of paths may be exponential in the
size of the schemas. A tree refers to the differences of a pair instead of copying them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Difference(NamedTuple):
    """A difference and where it is."""

    kind: str
    path: str


class Findings:
    """The differences of a pair of schemas, with paths relative to the pair."""

    __slots__ = ("_compatible_kinds", "_entries", "compatible")

    def __init__(self, compatible_kinds: frozenset[str]) -> None:
        self._compatible_kinds = compatible_kinds
        self._entries: list[tuple[tuple[str, ...], str | Findings]] = []
        self.compatible = True

    def add(self, kind: str, *path: str) -> None:
        """Add a difference at a path below the pair."""
        self._entries.append((path, kind))
        self.compatible = self.compatible and kind in self._compatible_kinds

    def include(self, findings: Findings, *path: str) -> None:
        """Include the differences of a nested pair."""
        if findings._entries:
            self._entries.append((path, findings))
            self.compatible = self.compatible and findings.compatible

    def all(self) -> Iterator[Difference]:
        """Yield all differences, in the order they were found."""
        return self._walk(incompatible_only=False)

    def incompatible(self) -> Iterator[Difference]:
        """Yield the incompatible differences only."""
        return self._walk(incompatible_only=True)

    def _walk(self, incompatible_only: bool) -> Iterator[Difference]:
        stack = [(iter(self._entries), "#/")]
        while stack:
            entries, prefix = stack[-1]
            for path, entry in entries:
                place = _below(prefix, path)
                if isinstance(entry, str):
                    if not incompatible_only or entry not in self._compatible_kinds:
                        yield Difference(entry, place)
                elif not (incompatible_only and entry.compatible):
                    stack.append((iter(entry._entries), place))
                    break
            else:
                stack.pop()


def _below(prefix: str, path: tuple[str, ...]) -> str:
    if not path:
        return prefix
    return f"{prefix}{'' if prefix == '#/' else '/'}{'/'.join(path)}"
