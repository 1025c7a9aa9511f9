"""Pictures of flows: topics and what processes them, from left to right, with live rates.

A picture is a layout only; a template draws it as SVG, whose text is that of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.console.web.call import Call

#: Larger flows are not drawn; the tables of the page have all of it.
MAX_NODES: Final = 120
_WIDTH: Final = 210
_HEIGHT: Final = 44
_GAP_X: Final = 70
_GAP_Y: Final = 14
_MARGIN: Final = 4
_MAX_LETTERS: Final = 28


@dataclass(frozen=True, slots=True)
class Node:
    """`id` is unique in the flow; `detail` is the second line, `url` the page about it."""

    id: str
    label: str
    detail: str = ""
    url: str | None = None
    strong: bool = False


Edge = tuple[str, str]


def topic_node(call: Call, name: str, role: str = "") -> Node:
    """Return a topic with the rate at which records are written to it."""
    rate = call.view.history.topic_rate(name)
    known = name in call.view.snapshot.topics
    parts = [role, "no such topic" if not known else "" if rate is None else f"{rate:,.1f} records/s"]
    return Node(
        f"topic {name}", name, " · ".join(filter(None, parts)), call.url("topics", name) if known else None
    )


def picture(nodes: Iterable[Node], edges: Iterable[Edge]) -> dict[str, Any] | None:
    """Lay out a flow; None if it is empty or too large. The first of nodes with the same id is drawn."""
    by_id: dict[str, Node] = {}
    for each in nodes:
        by_id.setdefault(each.id, each)
    if not by_id or len(by_id) > MAX_NODES:
        return None
    known = list(dict.fromkeys(each for each in edges if each[0] in by_id and each[1] in by_id))
    columns = _columns(list(by_id), known)
    places = {
        id: (_MARGIN + x * (_WIDTH + _GAP_X), _MARGIN + y * (_HEIGHT + _GAP_Y))
        for x, column in enumerate(columns)
        for y, id in enumerate(column)
    }
    return {
        "width": len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN,
        "height": max(map(len, columns)) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN,
        "box": (_WIDTH, _HEIGHT),
        "nodes": [
            {"node": _short(by_id[id]), "x": x, "y": y, "name": by_id[id].label}
            for id, (x, y) in places.items()
        ],
        "edges": [
            {"path": _path(places[one], places[other]), "name": f"{by_id[one].label} to {by_id[other].label}"}
            for one, other in known
        ],
    }


def _columns(ids: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Return the nodes of each column: one after all that lead to it, close to these."""
    forward = _without_cycles(ids, edges)
    column = dict.fromkeys(ids, 0)
    for _ in ids:
        for one, other in forward:
            column[other] = max(column[other], column[one] + 1)
    found: list[list[str]] = []
    row: dict[str, int] = {}
    for number in range(max(column.values()) + 1):
        wanted = [each for each in ids if column[each] == number]
        wanted.sort(
            key=lambda each: _mean(row[one] for one, other in forward if other == each and one in row)
        )
        row |= {each: place for place, each in enumerate(wanted)}
        found.append(wanted)
    return found


def _mean(values: Iterable[int]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def _without_cycles(ids: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges without those that lead back: an application may write what it reads."""
    following: Mapping[str, list[str]] = {id: [other for one, other in edges if one == id] for id in ids}
    kept: list[Edge] = []
    done: set[str] = set()
    for start in ids:
        if start in done:
            continue
        above, waiting = {start}, [(start, iter(following[start]))]
        while waiting:
            id, others = waiting[-1]
            other = next(others, None)
            if other is None:
                done.add(id)
                above.discard(id)
                waiting.pop()
            elif other not in above:
                kept.append((id, other))
                if other not in done:
                    above.add(other)
                    waiting.append((other, iter(following[other])))
    return kept


def _short(node: Node) -> Node:
    if len(node.label) <= _MAX_LETTERS:
        return node
    half = _MAX_LETTERS // 2
    return replace(node, label=f"{node.label[: half - 1]}…{node.label[-half:]}")


def _path(one: tuple[int, int], other: tuple[int, int]) -> str:
    """Return the path of a curve from the right side of a node to the left side of another."""
    x1, y1 = one[0] + _WIDTH, one[1] + _HEIGHT // 2
    x2, y2 = other[0], other[1] + _HEIGHT // 2
    bend = max(_GAP_X // 2, abs(x2 - x1) // 3)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
