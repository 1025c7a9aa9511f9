"""Maximum matching in a bipartite graph (Hopcroft and Karp)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_UNREACHED = -1


def maximum_matching(edges: Sequence[Sequence[int]], right_size: int) -> dict[int, int]:
    """Return the partner on the right of each matched vertex on the left, in the order of the left.

    `edges` has the neighbours on the right of each vertex on the left.
    """
    left: list[int | None] = [None] * len(edges)
    right: list[int | None] = [None] * right_size
    while True:
        layers = _layers(edges, left, right)
        if layers is None:
            return {vertex: partner for vertex, partner in enumerate(left) if partner is not None}
        remaining = [iter(neighbours) for neighbours in edges]
        for vertex, partner in enumerate(left.copy()):
            if partner is None:
                _augment(vertex, layers, remaining, left, right)


def _layers(
    edges: Sequence[Sequence[int]], left: list[int | None], right: list[int | None]
) -> list[int] | None:
    """Return the distance of each left vertex from an unmatched one; None if no path can be augmented."""
    layers = [0 if partner is None else _UNREACHED for partner in left]
    frontier = [vertex for vertex, partner in enumerate(left) if partner is None]
    found = False
    while frontier and not found:
        following = []
        for vertex in frontier:
            for neighbour in edges[vertex]:
                partner = right[neighbour]
                if partner is None:
                    found = True
                elif layers[partner] == _UNREACHED:
                    layers[partner] = layers[vertex] + 1
                    following.append(partner)
        frontier = following
    return layers if found else None


def _augment(
    start: int,
    layers: list[int],
    remaining: list[Iterator[int]],
    left: list[int | None],
    right: list[int | None],
) -> None:
    """Flip the edges of a path from an unmatched vertex to an unmatched neighbour, if there is one."""
    path: list[tuple[int, int]] = []
    vertex = start
    while True:
        for neighbour in remaining[vertex]:
            partner = right[neighbour]
            if partner is None:
                for on_path, taken in (*path, (vertex, neighbour)):
                    left[on_path], right[taken] = taken, on_path
                return
            if layers[partner] == layers[vertex] + 1:
                path.append((vertex, neighbour))
                vertex = partner
                break
        else:
            if not path:
                return
            vertex, _ = path.pop()
