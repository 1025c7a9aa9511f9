"""The ASGI application of the registry: routing, content types, cached responses.

A response that needed no record stays valid until the state changes; it is kept (`response_cache`), so that
serializers that ask for the same schema again cost a dictionary look-up. With ACLs it is kept for the
principal that was allowed to see it: rules do not change while the registry runs, and what they decide on is
the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote

from moldau.http.asgi import PRINCIPAL, Receive, Scope, Send, encode_json, header, send_response
from moldau.http.errors import ApiError
from moldau.http.requests import read_body
from moldau.registry.api import associations, schemas, settings, subjects
from moldau.registry.api.call import Call, Route
from moldau.registry.api.metadata import ServerMetadata, metadata_routes
from moldau.registry.api.permissions import authorize, authorize_reply
from moldau.registry.api.response_cache import Response, ResponseCache
from moldau.registry.authorization import Access, Authorizer
from moldau.registry.service import RegistryService
from moldau.registry.state.registry import Decision, Registry

_JSON: Final = b"application/vnd.schemaregistry.v1+json"
_TYPES: Final = (_JSON, b"application/vnd.schemaregistry+json", b"application/json")
_CONSUMED: Final = frozenset((*_TYPES, b"application/octet-stream"))

Match = tuple[Route, dict[str, str], str | None]


def routes(metadata: ServerMetadata) -> tuple[Route, ...]:
    """The table of all endpoints."""
    return (
        *metadata_routes(metadata),
        *subjects.ROUTES,
        *schemas.ROUTES,
        *settings.ROUTES,
        *associations.ROUTES,
    )


class RegistryApplication:
    def __init__(
        self,
        service: RegistryService,
        metadata: ServerMetadata,
        authorizer: Authorizer | None = None,
        *,
        largest_body: int = 16 << 20,
    ) -> None:
        self._service = service
        self._authorizer = authorizer
        self._largest_body = largest_body
        self._router = Router(routes(metadata))
        self._cache = ResponseCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        content_type = _JSON
        try:
            if method == "OPTIONS":
                await send_response(
                    send, 200, b"", None, [(b"allow", self._router.allowed(scope["raw_path"]))]
                )
                return
            content_type = _accepted(header(scope, b"accept"))
            body = b""
            if method in ("POST", "PUT"):
                _require_consumed(header(scope, b"content-type"))
                body = await read_body(scope, receive, self._largest_body)
            status, answer = await self._answer(scope, method, body)
        except ApiError as error:
            status = error.status
            answer = encode_json({"error_code": error.error_code, "message": error.message})
            await send_response(send, status, answer, content_type, error.headers)
            return
        if method == "HEAD":
            answer = b""
        await send_response(send, status, answer, content_type if status != 204 else None)

    async def _answer(self, scope: Scope, method: str, body: bytes) -> tuple[int, bytes]:
        path, query = scope["raw_path"], scope["query_string"]
        key = (method, path, query, body, None if self._authorizer is None else scope[PRINCIPAL])
        generation = self._service.generation
        if generation is not None:
            cached = self._cache.get(key, generation)
            if cached is not None and (cached.immutable or self._service.leads):
                return cached.status, cached.body
        route, parameters, context = self._router.match("GET" if method == "HEAD" else method, path)
        if self._authorizer is None:
            call = Call(parameters, query, body, context)
        else:
            call = Call(parameters, query, body, context, Access(self._authorizer, scope[PRINCIPAL]))
            authorize(route, call, self._service.registry)
        decision = await self._decide(route, call)
        if self._authorizer is not None:
            authorize_reply(route, call, decision)
        answer = _encoded(decision)
        if generation is not None and not decision.records and generation == self._service.generation:
            response = Response(decision.status, answer, route.is_immutable(call))
            self._cache.put(key, generation, response)
        return decision.status, answer

    async def _decide(self, route: Route, call: Call) -> Decision:
        def decide(registry: Registry) -> Decision:
            if self._authorizer is not None:
                # The state may have changed since: aliases, and the contexts in which a name is searched.
                authorize(route, call, registry)
            return route.decide(registry, call)

        if route.run is not None:
            return await route.run(self._service, call)
        if call.is_heavy(self._service.registry):
            if route.writes:
                await self._service.require_leader()
            await self._service.precompute(decide)
        if route.writes:
            return await self._service.write(decide)
        return await self._service.read(decide, immutable=route.is_immutable(call))


def _encoded(decision: Decision) -> bytes:
    reply = decision.reply
    if reply is None:
        return b""
    return reply.encode("utf-8", "surrogatepass") if isinstance(reply, str) else encode_json(reply)


class Router:
    """Routes by method and shape of the path. Segments may contain encoded slashes."""

    def __init__(self, table: Iterable[Route]) -> None:
        self._by_length: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}
        paths: dict[str, dict[str, Route]] = {}
        for route in table:
            paths.setdefault(route.path, {})[route.method] = route
        for path, by_method in paths.items():
            segments = path.split("/")[1:] if path != "/" else []
            self._by_length.setdefault(len(segments), []).append((segments, by_method))
        for shapes in self._by_length.values():
            # Literal segments take precedence over parameters.
            shapes.sort(key=lambda shape: sum(each.startswith("{") for each in shape[0]))

    def match(self, method: str, path: bytes) -> Match:
        found, parameters, context = self._find(path)
        route = found.get(method)
        if route is None:
            raise ApiError(405, 405, "HTTP 405 Method Not Allowed", [(b"allow", _allow(found))])
        return route, parameters, context

    def allowed(self, path: bytes) -> bytes:
        return _allow(self._find(path)[0])

    def _find(self, path: bytes) -> tuple[Mapping[str, Route], dict[str, str], str | None]:
        segments = [unquote(each) if "%" in each else each for each in path.decode("latin-1").split("/")[1:]]
        context = None
        if segments[-1:] == [""]:
            segments.pop()
        if len(segments) > 2 and segments[0] == "contexts":
            context = segments[1]
            segments = segments[2:]
        for shape, by_method in self._by_length.get(len(segments), ()):
            parameters: dict[str, str] = {}
            for expected, given in zip(shape, segments, strict=True):
                if expected.startswith("{"):
                    parameters[expected[1:-1]] = given
                elif expected != given:
                    break
            else:
                return by_method, parameters, context
        raise ApiError(404, 404, "HTTP 404 Not Found")


def _allow(methods: Mapping[str, Route]) -> bytes:
    allowed = {*methods, "OPTIONS", *(("HEAD",) if "GET" in methods else ())}
    return ",".join(sorted(allowed)).encode()


def _accepted(accept: bytes | None) -> bytes:
    """Return the media type of the response; error 406 if the client accepts none of ours."""
    if accept is None or b"*/*" in accept:
        return _JSON if accept is None else _first(accept) or _JSON
    found = _first(accept)
    if found is None and b"application/*" not in accept:
        raise ApiError(406, 406, "HTTP 406 Not Acceptable")
    return found or _JSON


def _first(accept: bytes) -> bytes | None:
    best, weight = None, 0.0
    for each in accept.split(b","):
        name, _, parameters = each.strip().partition(b";")
        if name.strip().lower() not in _TYPES:
            continue
        quality = _quality(parameters)
        if quality > weight:
            best, weight = name.strip().lower(), quality
    return best


def _quality(parameters: bytes) -> float:
    for each in parameters.split(b";"):
        name, _, value = each.strip().partition(b"=")
        if name == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _require_consumed(content_type: bytes | None) -> None:
    if content_type is None:
        return
    if content_type.partition(b";")[0].strip().lower() not in _CONSUMED:
        raise ApiError(415, 415, "HTTP 415 Unsupported Media Type")
