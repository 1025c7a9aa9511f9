"""Lag for scripts on the console's port: Burrow's API and Prometheus metrics, from what the pages show.

| path | answer |
|---|---|
| `/v3/kafka…`, `/burrow/admin…` | Burrow's API over all clusters, see `moldau.lag.serving.api` |
| `/metrics` | lag and verdicts of the first cluster |
| `/clusters/NAME/metrics` | those of a cluster |

If users sign in, a request needs the cookie of a session, or user and password (HTTP Basic): scripts and
Prometheus have no cookies. These paths are read only, so a browser that sends them by itself changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from starlette.requests import cookie_parser

from moldau.base.errors import KafkaError
from moldau.console.cluster.view import ClusterView
from moldau.console.settings import ConsoleSettings
from moldau.console.web.audit import AuditEntry, AuditLog
from moldau.console.web.call import Refused
from moldau.console.web.sessions import COOKIE, Session, Sessions
from moldau.http.asgi import Application, Receive, Scope, Send, header, send_json, send_response
from moldau.http.authentication.credentials import parse_authorization
from moldau.lag.alerts import Webhook
from moldau.lag.serving.api import BurrowApi
from moldau.lag.serving.metrics import render

_BURROW: Final = "/v3/kafka"
_ADMIN: Final = ("/burrow/admin", "/burrow/admin/ready")
_CHALLENGE: Final = ((b"www-authenticate", b'Basic realm="Moldau console"'),)


class LagEndpoints:
    """An ASGI application around the pages, which answers the paths of the table itself."""

    def __init__(
        self,
        pages: Application,
        settings: ConsoleSettings,
        views: Mapping[str, ClusterView],
        sessions: Sessions,
        webhooks: Mapping[str, Webhook],
        audit: AuditLog,
    ) -> None:
        self._pages = pages
        self._settings = settings
        self._views = views
        self._sessions = sessions
        self._webhooks = webhooks
        self._audit = audit
        self._burrow = BurrowApi({name: view.monitor for name, view in views.items()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        measured = self._measured_cluster(path)
        if path in _ADMIN:
            await self._burrow(scope, receive, send)
        elif path == _BURROW or path.startswith(f"{_BURROW}/") or measured is not None:
            try:
                await self._answer(measured, scope, receive, send)
            except Refused as refused:
                if refused.status in (401, 429):
                    self._record(scope, refused)
                challenge = _CHALLENGE if refused.status == 401 else ()
                await send_json(send, refused.status, _problem(refused.message), headers=challenge)
        else:
            await self._pages(scope, receive, send)

    def _record(self, scope: Scope, refused: Refused) -> None:
        credentials = parse_authorization(header(scope, b"authorization") or b"")
        entry = AuditEntry(
            f"{scope['method']} {scope['path']}",
            f"refused: {refused.message}",
            user=None if credentials is None else credentials.user,
            address=(scope.get("client") or ("",))[0],
        )
        if credentials is None or refused.status == 429:
            self._audit.record_stranger(entry)
        else:
            self._audit.record(entry)

    def _measured_cluster(self, path: str) -> str | None:
        """Return the cluster whose metrics a path has; None for other paths."""
        if path == "/metrics":
            return next(iter(self._settings.clusters))
        match path.split("/"):
            case ["", "clusters", name, "metrics"] if name in self._settings.clusters:
                return name
        return None

    async def _answer(self, measured: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._session(scope) if self._settings.login else None
        if measured is not None:
            view = await self._view(measured, session)
            await self._metrics(measured, view, scope, send)
        elif session is None:
            await self._burrow(scope, receive, send)
        else:
            await self._burrow_of(session, scope, receive, send)

    async def _session(self, scope: Scope) -> Session:
        cookies = cookie_parser((header(scope, b"cookie") or b"").decode("latin-1"))
        session = self._sessions.find(cookies.get(COOKIE))
        if session is not None:
            return session
        credentials = parse_authorization(header(scope, b"authorization") or b"")
        address = (scope.get("client") or ("",))[0]
        found = None if credentials is None else await self._sessions.of_script(credentials, address)
        if found is None:
            raise Refused(401, "Sign in first: /login, or user and password as HTTP Basic.")
        return found

    async def _view(self, name: str, session: Session | None) -> ClusterView:
        if session is None:
            return self._views[name]
        try:
            return await self._sessions.view(name, session)
        except KafkaError as error:
            raise Refused(503, str(error)) from error

    async def _burrow_of(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the groups that a user may see; only the cluster of the path is connected to."""
        names = tuple(self._settings.clusters)
        wanted = scope["path"].removeprefix(_BURROW).split("/")[1:2]
        views = {each: await self._view(each, session) for each in map(unquote, wanted) if each in names}
        api = BurrowApi({name: view.monitor for name, view in views.items()}, names)
        await api(scope, receive, send)

    async def _metrics(self, name: str, view: ClusterView, scope: Scope, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise Refused(405, "Metrics can only be read.")
        accept = (header(scope, b"accept") or b"").decode("latin-1")
        kind, body = render(name, view.lag, self._webhooks.get(name), accept)
        await send_response(send, 200, body, kind)


def _problem(message: str) -> dict[str, object]:
    """An error in the form of Burrow's."""
    return {"error": True, "message": message, "result": {}}
