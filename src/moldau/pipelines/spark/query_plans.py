"""Traverse the plan of a query in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(plan: Any) -> Iterator[Any]:
    """Yield the plan and all nodes below it."""
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from nodes(children.apply(number))


def class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
