"""Rounds of several contenders, and a table with a column for each.

The contenders run alternately, in reverse order every second round, so that none always runs first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

C = TypeVar("C")
Figures = dict[str, float]


def alternating(
    contenders: Sequence[C], count: int, name: Callable[[C], str], measure: Callable[[C], Figures]
) -> dict[str, list[Figures]]:
    """Measure every contender once per round; return the figures by name, in the order of the contenders."""
    rounds: dict[str, list[Figures]] = {name(each): [] for each in contenders}
    for number in range(count):
        for each in contenders if number % 2 == 0 else reversed(contenders):
            begin = time.monotonic()
            rounds[name(each)].append(measure(each))
            words = f"round {number + 1} of {count}: {name(each)}, {time.monotonic() - begin:.0f} s"
            print(words, file=sys.stderr, flush=True)
    return rounds


def markdown(rounds: dict[str, list[Figures]]) -> str:
    """Return a table with a row per figure and a column per contender: medians of the rounds.

    The cell of a figure that a contender does not have is empty.
    """
    names = list(dict.fromkeys(name for found in rounds.values() for each in found for name in each))
    lines = [f"| {name} | {' | '.join(_cell(name, found) for found in rounds.values())} |" for name in names]
    return "\n".join([f"| | {' | '.join(rounds)} |", "|---" * (1 + len(rounds)) + "|", *lines])


def _cell(name: str, rounds: Sequence[Figures]) -> str:
    values = [each[name] for each in rounds if name in each]
    if not values:
        return ""
    value = statistics.median(values)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
