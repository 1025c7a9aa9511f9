"""The ASGI application: finds cluster, user and handler of a request, and sends what the handler returns."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.staticfiles import StaticFiles

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.types import RegistryError
from moldau.console.cluster.view import ClusterView
from moldau.console.routes import HARMLESS, ROUTES
from moldau.console.services import ConnectError, Services
from moldau.console.settings import ConsoleSettings
from moldau.console.web.audit import AuditLog
from moldau.console.web.call import Call, Done, Page, Refused, accepts_json, not_found
from moldau.console.web.forms import InvalidField
from moldau.console.web.rendering import answer_page, plain_page
from moldau.console.web.sessions import COOKIE, Session, Sessions
from moldau.http.asgi import Receive, Scope, Send
from moldau.http.errors import ApiError
from moldau.network.failures import NodeUnreachable

logger = logging.getLogger(__name__)

_CLUSTERS: Final = "/clusters/"
_SAFE: Final = ("GET", "HEAD")
_DENIED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_MISSING: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.GROUP_ID_NOT_FOUND}
)


class ConsoleApplication:
    def __init__(
        self,
        settings: ConsoleSettings,
        views: dict[str, ClusterView],
        sessions: Sessions,
        services: Services,
        audit: AuditLog,
    ) -> None:
        self._settings = settings
        self._views = views
        self._sessions = sessions
        self._services = services
        self._audit = audit
        folder = Path(__file__).parent / "static"
        self._static = StaticFiles(directory=folder)
        self._files = {f"/static/{each.relative_to(folder)}" for each in folder.rglob("*.*")}
        self._routes: list[tuple[Route, Callable[[Call], Awaitable[Any]]]] = [
            (Route(path, handler, methods=[method]), handler) for method, path, handler in ROUTES
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except _Static as static:
            await self._static({**scope, "path": static.path, "root_path": ""}, receive, send)
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path = request.url.path
        if path == "/healthz":
            return self._health()
        if path.startswith("/static/"):
            if path not in self._files:
                return self._problem(request, None, 404, "This file does not exist.")
            raise _Static(path.removeprefix("/static"))
        session = self._sessions.find(request.cookies.get(COOKIE)) if self._settings.login else None
        request.scope["moldau.session"] = session
        if path in ("/login", "/logout"):
            return await self._sign(request, session)
        if self._settings.login and session is None:
            if request.method in _SAFE and not accepts_json(request.headers.get("accept", "")):
                return RedirectResponse("/login", 303)
            return self._problem(request, None, 401, "Sign in first: /login.")
        return await self._in_cluster(request, session)

    def _health(self) -> Response:
        if self._settings.login:
            return JSONResponse({"status": "ok"})
        states = {name: view.snapshot.error for name, view in self._views.items()}
        usable = any(error is None for error in states.values())
        body = {"status": "ok" if usable else "unreachable", "clusters": states}
        return JSONResponse(body, 200 if usable else 503)

    async def _in_cluster(self, request: Request, session: Session | None) -> Response:
        # Names of groups and subjects may contain slashes, so that routes match the encoded path.
        names, base, path = list(self._settings.clusters), "", request.scope["raw_path"].decode("latin-1")
        cluster = names[0]
        if path.startswith(_CLUSTERS):
            cluster, _, rest = path.removeprefix(_CLUSTERS).partition("/")
            base, path = f"{_CLUSTERS}{cluster}", f"/{rest}"
            if cluster not in names:
                return self._problem(request, None, 404, f"Cluster {cluster} does not exist.")
        try:
            view = self._views[cluster] if session is None else await session.account.view(cluster)
        except KafkaError as error:
            return self._problem(request, None, 503, str(error))
        user = None if session is None else session.account.user
        call = Call(request, view, self._settings, self._services, base=base, user=user)
        return await self._handle(call, path, session)

    async def _handle(self, call: Call, path: str, session: Session | None) -> Response:
        request = call.request
        changes = request.method not in _SAFE
        try:
            handler = self._find(request, path)
            if changes:
                self._check_change(call, session)
            if changes and self._settings.read_only and handler not in HARMLESS:
                raise Refused(403, "The console is read-only.")
            answer = await handler(call)
        except (Refused, InvalidField, KafkaError, ApiError) as error:
            status, message = _problem_of(error)
            if changes:
                self._log(call, path, f"refused: {message}")
            return self._problem(request, call, status, message)
        if changes:
            self._log(call, path, "done")
        if isinstance(answer, Page):
            return answer_page(call, answer)
        if isinstance(answer, Done):
            return self._done(call, answer)
        response: Response = answer
        return response

    def _find(self, request: Request, path: str) -> Callable[[Call], Awaitable[Any]]:
        scope = {**request.scope, "path": path, "root_path": ""}
        known = False
        for route, handler in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                params = found["path_params"]
                request.scope["path_params"] = {name: unquote(value) for name, value in params.items()}
                return handler
            known = known or match is Match.PARTIAL
        if known:
            raise Refused(405, f"{request.method} is not possible here.")
        raise not_found("This page")

    def _check_change(self, call: Call, session: Session | None) -> None:
        if session is not None and call.request.headers.get("x-csrf-token") != session.token:
            raise Refused(403, "The request has no valid token; reload the page.")

    def _done(self, call: Call, done: Done) -> Response:
        if call.wants_json:
            body = {"message": done.message, "location": done.location, **done.data}
            return JSONResponse(body, done.status)
        return RedirectResponse(done.location or call.request.headers.get("referer", "/"), 303)

    def _problem(self, request: Request, call: Call | None, status: int, message: str) -> Response:
        if accepts_json(request.headers.get("accept", "")):
            return JSONResponse({"error": message}, status)
        if call is None:
            return plain_page("problem_plain", status, title="Not possible", message=message)
        data = {"status": status, "message": message}
        title = "Not found" if status == 404 else "Not possible"
        return answer_page(call, Page("problem", title, data, status=status))

    def _log(self, call: Call, path: str, result: str) -> None:
        client = call.request.client
        self._audit.record(
            cluster=call.view.name,
            user=call.user,
            address="" if client is None else client.host,
            action=f"{call.request.method} {path}",
            fields=call.request.query_params,
            result=result,
        )

    async def _sign(self, request: Request, session: Session | None) -> Response:
        from moldau.console.pages.login import login, logout

        if not self._settings.login:
            return RedirectResponse("/", 303)
        if request.url.path == "/logout":
            return await logout(request, self._sessions, session)
        return await login(request, self._sessions, secure=request.url.scheme == "https")


class _Static(Exception):
    """The request is for a file of the console."""

    def __init__(self, path: str) -> None:
        self.path = path


def _problem_of(error: Exception) -> tuple[int, str]:
    """Return the status of an expected failure, and its sentence."""
    if isinstance(error, Refused | ApiError):
        return error.status, error.message
    if isinstance(error, InvalidField):
        return 400, error.message
    if isinstance(error, ConnectError | RegistryError):
        return error.status or 502, str(error)
    if isinstance(error, KafkaError):
        if isinstance(error, NodeUnreachable):
            return 503, str(error)
        if error.code in _DENIED:
            return 403, str(error)
        return (404 if error.code in _MISSING else 409), str(error)
    raise error
