"""The table of routes: which handler serves a method and path, and what the documentation says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from moldau.http.errors import ApiError
from moldau.rest.request import Request, Response

#: None: the handler has sent its response itself.
Handler = Callable[[Request], Awaitable[Response | None]]


class Parameter(NamedTuple):
    """A query parameter of a route."""

    name: str
    description: str
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    #: With variables: `/topics/{topic_name}`.
    path: str
    summary: str
    handler: Handler
    query: tuple[Parameter, ...] = ()
    #: The schema of the request's body in the OpenAPI description.
    body: str = ""
    description: str = ""
    #: The schema of the body of a successful response, and its status.
    response: str = ""
    status: int = 200
    #: Media types of requests and of responses; empty: any.
    consumes: tuple[str, ...] = ()
    produces: tuple[str, ...] = ("application/json",)

    @property
    def version(self) -> str:
        return "v3" if self.path.startswith("/v3") else "v2"


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    #: By method: the route and the names of its variables.
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Router:
    """Finds routes. A literal segment takes precedence over a variable."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        for segment in _segments(route.path):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literals.setdefault(segment, _Node())
        node.routes[route.method] = (route, tuple(names))

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and the variables; `ApiError` 404 or 405 without one."""
        found = _find(self._root, [unquote(each) for each in _segments(raw_path)], 0)
        if found is None:
            raise ApiError(404, 404, "HTTP 404 Not Found")
        node, values = found
        entry = node.routes.get("GET" if method == "HEAD" else method)
        if entry is None:
            allowed = ", ".join(sorted(node.routes)).encode()
            raise ApiError(405, 405, "HTTP 405 Method Not Allowed", ((b"allow", allowed),))
        route, names = entry
        return route, dict(zip(names, values, strict=True))


def _segments(path: str) -> list[str]:
    return [each for each in path.split("/") if each]


def _find(node: _Node, segments: list[str], index: int) -> tuple[_Node, list[str]] | None:
    if index == len(segments):
        return (node, []) if node.routes else None
    segment = segments[index]
    literal = node.literals.get(segment)
    if literal is not None and (found := _find(literal, segments, index + 1)) is not None:
        return found
    if node.variable is None or (found := _find(node.variable, segments, index + 1)) is None:
        return None
    deeper, values = found
    return deeper, [segment, *values]
