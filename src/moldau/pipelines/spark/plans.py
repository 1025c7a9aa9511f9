"""Looking through the plan of a query, as it is in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(plan: Any) -> Iterator[Any]:
    """The plan and everything below it."""
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from nodes(children.apply(number))


def kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
