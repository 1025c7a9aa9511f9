"""The ASGI application: finds cluster, user and handler of a request, and sends what the handler returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.staticfiles import StaticFiles

from moldau.base.errors import AUTHORIZATION_ERRORS, ErrorCode, KafkaError
from moldau.client.registry.types import RegistryError
from moldau.console.login.redirects import login_path, requested_page
from moldau.console.login.roles import Role
from moldau.console.pages.login import PATHS as LOGIN_PATHS
from moldau.console.pages.login import LoginPages
from moldau.console.routes import ROUTES, Action
from moldau.console.services import ConnectError, Services
from moldau.console.settings import ConsoleSettings, Login
from moldau.console.web.audit import AuditEntry, AuditLog
from moldau.console.web.call import Call, Done, Page, Refused, accepts_json, not_found
from moldau.console.web.forms import InvalidField
from moldau.console.web.health import Health
from moldau.console.web.rendering import answer_page, plain_page
from moldau.console.web.sessions import COOKIE, OtherCredentials, Session, Sessions
from moldau.http.asgi import Receive, Scope, Send
from moldau.http.authentication.credentials import BEARER, parse_authorization
from moldau.http.errors import ApiError
from moldau.network.failures import NodeUnreachable

_CLUSTERS: Final = "/clusters/"
_SAFE: Final = ("GET", "HEAD")
_MISSING: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.GROUP_ID_NOT_FOUND}
)


class ConsoleApplication:
    def __init__(
        self,
        settings: ConsoleSettings,
        sessions: Sessions,
        services: Mapping[str, Services],
        login: LoginPages,
        health: Health,
        audit: AuditLog,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._services = services
        self._login = login
        self._health = health
        self._audit = audit
        folder = Path(__file__).parent / "static"
        self._static = StaticFiles(directory=folder)
        self._files = {f"/static/{each.relative_to(folder)}" for each in folder.rglob("*.*")}
        self._routes = [(Route(each.path, each.handler, methods=[each.method]), each) for each in ROUTES]

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
            return await self._health.respond()
        if path.startswith("/static/"):
            if path not in self._files:
                return self._problem(request, None, 404, "This file does not exist.")
            raise _Static(path.removeprefix("/static"))
        session = None
        if self._settings.login is not None:
            uses = not _is_background(request)
            session = self._sessions.find(request.cookies.get(COOKIE), uses=uses)
        request.scope["moldau.session"] = session
        if path in LOGIN_PATHS:
            return await self._login.respond(request, session)
        if self._settings.login is not None and session is None:
            try:
                session = await self._of_token(request)
            except Refused as refused:
                self._audit.record_stranger(_refused_entry(request, refused.message))
                return self._problem(request, None, refused.status, refused.message)
            if session is None:
                return self._signed_out(request, "Sign in first: /login.")
        return await self._in_cluster(request, session)

    async def _of_token(self, request: Request) -> Session | None:
        """Return the session of a script with an access token; passwords are for `/login` only."""
        credentials = parse_authorization(request.headers.get("authorization", "").encode("latin-1"))
        if credentials is None or credentials.scheme != BEARER:
            return None
        return await self._sessions.of_script(credentials, _address(request))

    def _signed_out(self, request: Request, message: str, cluster: str = "") -> Response:
        """Send a person to the login; refuse the requests of scripts and of pages that update themselves."""
        target = login_path(requested_page(request), cluster)
        if "hx-request" in request.headers:
            return Response(message, 401, headers={"hx-redirect": target})
        fetched = request.headers.get("sec-fetch-mode", "navigate") != "navigate"
        wants_json = accepts_json(request.headers.get("accept", ""))
        if request.method in _SAFE and not fetched and not wants_json:
            if request.headers.get("sec-fetch-site") == "cross-site":
                # With a link of another site browsers do not send the strict cookie; the page opens itself.
                return plain_page("continue", 200, title="Continue", next=requested_page(request))
            return RedirectResponse(target, 303)
        if not fetched:
            self._audit.record_stranger(_refused_entry(request, "not signed in"))
        return self._problem(request, None, 401, message)

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
            view = await self._sessions.view(cluster, session)
        except OtherCredentials as other:
            return self._signed_out(request, other.message, other.cluster)
        except Refused as refused:
            return self._problem(request, None, refused.status, refused.message)
        call = Call(
            request,
            view,
            self._settings,
            self._services[cluster],
            base=base,
            user=None if session is None else session.user_at(cluster),
            role=Role.ADMIN if session is None else session.role,
        )
        response = await self._handle(call, path, session)
        if session is not None and isinstance(response, StreamingResponse):
            body = cast(AsyncGenerator[Any, None], response.body_iterator)
            response.body_iterator = self._while_signed_in(session, body)
        return response

    async def _while_signed_in(
        self, session: Session, items: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """End a stream with the session."""
        async with aclosing(items):
            async for item in items:
                if self._sessions.is_over(session):
                    return
                yield item

    async def _handle(self, call: Call, path: str, session: Session | None) -> Response:
        request = call.request
        changes = request.method not in _SAFE
        action = None
        try:
            action = self._find(request, path)
            if changes:
                self._check_change(call, session)
            call.require(action.role)
            if action.service:
                await call.require_alter_cluster()
            answer = await action.handler(call)
        except (Refused, InvalidField, KafkaError, ApiError) as error:
            status, message = _problem_of(error)
            if changes:
                self._log(call, path, action, f"refused: {message}")
            return self._problem(request, call, status, message)
        if changes:
            detail = answer.message if isinstance(answer, Done) else ""
            self._log(call, path, action, "done", detail)
        if isinstance(answer, Page):
            return answer_page(call, answer)
        if isinstance(answer, Done):
            return self._done(call, answer)
        response: Response = answer
        return response

    def _find(self, request: Request, path: str) -> Action:
        scope = {**request.scope, "path": path, "root_path": ""}
        known = False
        for route, action in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                params = found["path_params"]
                request.scope["path_params"] = {name: unquote(value) for name, value in params.items()}
                return action
            known = known or match is Match.PARTIAL
        if known:
            raise Refused(405, f"{request.method} is not possible here.")
        raise not_found("This page")

    def _check_change(self, call: Call, session: Session | None) -> None:
        if session is None or session.script:
            return
        if call.request.headers.get("x-csrf-token") != session.token:
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

    def _log(self, call: Call, path: str, action: Action | None, result: str, detail: str = "") -> None:
        given = {**call.request.query_params, **call.fields}
        audited = () if action is None else action.audited
        values = {**call.request.path_params, **{name: given[name] for name in audited if given.get(name)}}
        shown = call.user is not None and call.settings.login is Login.OIDC
        self._audit.record(
            AuditEntry(
                f"{call.request.method} {path}",
                result,
                user=call.user,
                role=call.role.label if shown else None,
                address=_address(call.request),
                cluster=call.view.name,
                values=values,
                fields=tuple(given),
                detail=detail,
            )
        )


def _refused_entry(request: Request, reason: str) -> AuditEntry:
    action = f"{request.method} {request.url.path}"
    return AuditEntry(action, f"refused: {reason}", address=_address(request))


def _is_background(request: Request) -> bool:
    """Return whether a page has sent the request by itself, so that it does not prolong the session."""
    headers = request.headers
    return "hx-request" in headers or "x-background" in headers or request.url.path.endswith("/events")


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


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
        if error.code in AUTHORIZATION_ERRORS:
            return 403, str(error)
        return (404 if error.code in _MISSING else 409), str(error)
    raise error
