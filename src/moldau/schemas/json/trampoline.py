"""Recursive algorithms without the Python stack, because schemas nest deeper than the recursion limit.

A recursive function is written as a generator: it yields the arguments of a recursive call, as a generator of
the same kind, and receives the result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

#: A recursive computation of a T: yields other computations, receives their results.
Recursion = Generator[Any, Any, T]


def run(recursion: Recursion[T]) -> T:
    """Run a recursion to its result."""
    stack: list[Recursion[Any]] = [recursion]
    result: Any = None
    while stack:
        try:
            call = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
        else:
            stack.append(call)
            result = None
    final: T = result
    return final
