"""Recursive algorithms without the Python stack, because schemas nest deeper than the recursion limit.

A recursive function is written as a generator: it yields a recursive call, as a generator of the same kind,
and receives the result. A function that knows its result at once may return it instead of a generator.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")

#: A recursive computation of a T: yields other computations, receives their results.
Recursion = Generator[Any, Any, T]


def run(recursion: Recursion[T]) -> T:
    """Run a recursion to its result."""
    if type(recursion) is not GeneratorType:
        return recursion  # type: ignore[return-value]
    stack: list[Recursion[Any]] = [recursion]
    result: Any = None
    while stack:
        try:
            call = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
        else:
            if type(call) is GeneratorType:
                stack.append(call)
                result = None
            else:
                result = call
    final: T = result
    return final
