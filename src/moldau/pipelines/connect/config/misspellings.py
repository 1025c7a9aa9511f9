"""Names of settings that are almost a known one.

Kafka Connect accepts unknown names, because plugins and clients have names of their own. A name that differs
from a known one by a single character, or by two that are exchanged, is refused: it has no effect, and hardly
ever means anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

#: Settings of clients, transformations and topics, whose names depend on other settings.
FREE: Final = (
    "producer.",
    "consumer.",
    "admin.",
    "transforms.",
    "predicates.",
    "topic.creation.",
    "config.providers.",
)
#: Shorter names have too many neighbours.
_MIN_LENGTH: Final = 4


def misspelt(names: Iterable[str], known: Collection[str], free: tuple[str, ...] = FREE) -> dict[str, str]:
    """Return each name that is almost a known one, and that."""
    found = {}
    for name in names:
        if name in known or len(name) < _MIN_LENGTH or name.startswith(free):
            continue
        meant = next((each for each in sorted(known) if _is_neighbour(name, each)), None)
        if meant is not None:
            found[name] = meant
    return found


def message(name: str, meant: str) -> str:
    return f"Unknown configuration {name}. Did you mean {meant}?"


def _is_neighbour(one: str, other: str) -> bool:
    """Return whether one character was added, lost or replaced, or two were exchanged."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    left, right = one[start:], other[start:]
    if len(left) != len(right):
        return left[1:] == right if len(left) > len(right) else left == right[1:]
    return left[1:] == right[1:] or (left[1::-1] == right[:2] and left[2:] == right[2:])
