"""A request as the handlers see it, and the table of routes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from moldau.http.asgi import JSON, Header, Receive, Scope, encode_json, header
from moldau.http.errors import ApiError
from moldau.http.requests import parse_json, read_body
from moldau.pipelines.connect.worker.herder import Herder, bad_request

_MAX_BODY: Final = 10 << 20


class Response(NamedTuple):
    status: int = 200
    body: bytes = b""
    content_type: bytes | None = JSON
    headers: tuple[Header, ...] = ()


def answer(value: Any, status: int = 200, headers: tuple[Header, ...] = ()) -> Response:
    return Response(status, encode_json(value), JSON, headers)


NO_CONTENT: Final = Response(204, b"", None)
ACCEPTED: Final = Response(202, b"", None)


@dataclass(slots=True)
class Call:
    """One request: its path variables, query and body."""

    herder: Herder
    scope: Scope
    receive: Receive
    params: Mapping[str, str]
    cluster_id: str | None
    _query: list[tuple[str, str]] | None = None
    _body: bytes | None = None

    @property
    def connector(self) -> str:
        return self.params["connector"]

    def queries(self, name: str) -> list[str]:
        return [value for each, value in self.all_queries() if each == name]

    def all_queries(self) -> list[tuple[str, str]]:
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                self._query = parse_qsl(text, keep_blank_values=True, max_num_fields=100)
            except ValueError:
                raise bad_request("The query has too many fields.") from None
        return self._query

    def flag(self, name: str, default: bool = False) -> bool:
        values = self.queries(name)
        return values[0].lower() == "true" if values else default

    async def body(self) -> bytes:
        """Return the body, also when it is asked for again."""
        if self._body is None:
            self._body = await read_body(self.scope, self.receive, _MAX_BODY)
        return self._body

    async def json(self) -> Any:
        """Return the body; `ApiError` if it is not JSON, or announced as something else."""
        kind = (header(self.scope, b"content-type") or JSON).partition(b";")[0].strip().lower()
        if kind != JSON:
            raise ApiError(415, 415, "HTTP 415 Unsupported Media Type")
        return parse_json(await self.body())

    async def json_object(self) -> dict[str, Any]:
        value = await self.json()
        if not isinstance(value, dict):
            raise bad_request("The body of the request is not a JSON object.")
        return value

    async def properties(self) -> dict[str, Any]:
        """Return the settings of the body."""
        return texts(await self.json_object())


def texts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as text; numbers and booleans are accepted, as by Kafka Connect."""
    return {name: _text(name, value) for name, value in settings.items()}


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise bad_request(f"The value of {name} is not a string.")


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(slots=True)
class Route:
    """A method and a path with variables: `/connectors/{connector}`."""

    method: str
    path: str
    handler: Handler
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self.pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path) + "/?")


def raw_path(scope: Scope) -> str:
    """Return the path as it was sent, in which names are still quoted."""
    path: str = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    return path


class Router:
    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._routes = routes

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and the variables; `ApiError` 404 or 405 without one."""
        allowed = []
        for route in self._routes:
            match = route.pattern.fullmatch(raw_path)
            if match is None:
                continue
            if route.method == ("GET" if method == "HEAD" else method):
                return route, {name: unquote(value) for name, value in match.groupdict().items()}
            allowed.append(route.method)
        if allowed:
            headers = ((b"allow", ", ".join(sorted(set(allowed))).encode()),)
            raise ApiError(405, 405, "HTTP 405 Method Not Allowed", headers)
        raise ApiError(404, 404, "HTTP 404 Not Found")
