"""Signing in and out: with a password of the cluster, or with OpenID Connect.

| path | |
|---|---|
| `GET /login` | the form, or the link to the identity provider |
| `POST /login` | sign in with user and password |
| `GET /login/oidc` | go to the identity provider |
| `GET /login/callback` | return from it |
| `POST /logout` | end the session |
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from moldau.console.login.oidc import LIFETIME_S, OidcLogin
from moldau.console.login.provider import LoginRefused, ProviderUnavailable
from moldau.console.login.redirects import login_path, safe_path
from moldau.console.login.settings import CALLBACK, LOGIN
from moldau.console.settings import ConsoleSettings
from moldau.console.web.audit import AuditEntry, AuditLog
from moldau.console.web.call import Refused, accepts_json
from moldau.console.web.forms import InvalidField, read_form
from moldau.console.web.rendering import plain_page
from moldau.console.web.sessions import COOKIE, Session, Sessions
from moldau.http.errors import ApiError

_MAX_BYTES: Final = 16 * 1024
#: The cookie of a login that has begun.
_LOGIN_COOKIE: Final = "moldau_console_login"
_SIGNED_OUT: Final = "signed-out"
PATHS: Final = (LOGIN, "/logout", "/login/oidc", CALLBACK)


class LoginPages:
    def __init__(
        self, settings: ConsoleSettings, sessions: Sessions, oidc: OidcLogin | None, audit: AuditLog
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._oidc = oidc
        self._audit = audit

    async def respond(self, request: Request, session: Session | None) -> Response:
        """Answer one of `PATHS`."""
        path, posted = request.url.path, request.method == "POST"
        if self._settings.login is None:
            return RedirectResponse("/", 303)
        if path == "/logout":
            return await self._sign_out(request, session) if posted else RedirectResponse("/", 303)
        if self._oidc is None:
            if path != LOGIN:
                return plain_page(
                    "problem_plain", 404, title="Not found", message="This page does not exist."
                )
            return await self._sign_in(request) if posted else self._form(request)
        if posted:
            return self._problem(request, 405, "Sign in with the identity provider: /login.")
        if path == "/login/oidc":
            return await self._begin(request, self._oidc)
        if path == CALLBACK:
            return await self._complete(request, self._oidc)
        sign_out = (
            await self._oidc.sign_out_url(_base_url(request)) if _SIGNED_OUT in request.query_params else None
        )
        return self._form(request, sign_out=sign_out or "")

    def _form(self, request: Request, status: int = 200, **fields: str) -> Response:
        query = request.query_params
        values: dict[str, Any] = {
            "user": "",
            "message": "",
            "sign_out": "",
            "signed_out": _SIGNED_OUT in query,
            "next": safe_path(query.get("next", "/")),
            "cluster": query.get("cluster", ""),
            **fields,
        }
        if values["cluster"] not in self._settings.clusters:
            values["cluster"] = ""
        values["provider"] = login_path(values["next"]).replace(LOGIN, "/login/oidc", 1)
        values["oidc"] = self._oidc is not None
        return plain_page("login", status, title="Sign in", **values)

    async def _sign_in(self, request: Request) -> Response:
        address, fields = _address(request), {"user": "", "next": "/", "cluster": ""}
        try:
            form = await read_form(request, _MAX_BYTES)
            fields = {name: form.get(name, "") for name in fields}
            fields["next"] = safe_path(fields["next"])
            user, cluster = form.text("user", "User"), fields["cluster"]
            if cluster and cluster not in self._settings.clusters:
                raise InvalidField(f"Cluster {cluster} does not exist.")
            cookie = await self._sessions.sign_in(
                user,
                form.get("password", ""),
                address,
                cluster=cluster,
                cookie=request.cookies.get(COOKIE),
            )
        except (Refused, InvalidField, ApiError) as error:
            status = 400 if isinstance(error, InvalidField) else error.status
            self._record(
                request,
                f"refused: {error.message}",
                fields["user"],
                fields["cluster"],
                stranger=status in (400, 429),
            )
            if accepts_json(request.headers.get("accept", "")):
                return JSONResponse({"error": error.message}, status)
            return self._form(request, status, message=error.message, **fields)
        self._record(request, "done", user, cluster)
        response: Response = RedirectResponse(fields["next"], 303)
        if accepts_json(request.headers.get("accept", "")):
            # A script sends the token with every change, as X-CSRF-Token.
            session = self._sessions.find(cookie)
            response = JSONResponse({"user": user, "token": "" if session is None else session.token})
        self._set_cookie(request, response, cookie)
        return response

    async def _begin(self, request: Request, oidc: OidcLogin) -> Response:
        page = safe_path(request.query_params.get("next", "/"))
        try:
            begun = await oidc.begin(_base_url(request), page, again="again" in request.query_params)
        except ProviderUnavailable as error:
            return self._problem(request, 503, f"The identity provider cannot be used: {error}")
        response = RedirectResponse(begun.url, 303)
        response.set_cookie(
            _LOGIN_COOKIE,
            begun.cookie,
            max_age=LIFETIME_S,
            path=LOGIN,
            httponly=True,
            samesite="lax",
            secure=self._is_secure(request),
        )
        return response

    async def _complete(self, request: Request, oidc: OidcLogin) -> Response:
        try:
            found = await oidc.complete(request.url.query, request.cookies.get(_LOGIN_COOKIE, ""))
        except (LoginRefused, ProviderUnavailable) as error:
            status = 403 if isinstance(error, LoginRefused) else 503
            self._record(request, f"refused: {error}", stranger=True)
            return self._without_login_cookie(self._problem(request, status, str(error)))
        if found.role is None:
            self._record(request, "refused: no role", found.user)
            message = (
                f"{found.user} has no access to this console: the claim {oidc.claim} contains none of its "
                "roles. Ask an administrator for one of them."
            )
            return self._without_login_cookie(self._problem(request, 403, message))
        try:
            cookie = await self._sessions.begin(Session(found.user, found.role))
        except Refused as refused:
            return self._without_login_cookie(self._problem(request, refused.status, refused.message))
        self._record(request, "done", found.user, role=found.role.label)
        # The browser comes from another site: with a redirect it would not send the strict cookie.
        response = plain_page("continue", 200, title="Signed in", next=found.page)
        self._set_cookie(request, response, cookie)
        return self._without_login_cookie(response)

    async def _sign_out(self, request: Request, session: Session | None) -> Response:
        if session is not None:
            form = await read_form(request, _MAX_BYTES)
            if form.get("token", "") != session.token:
                return self._problem(request, 403, "The token is not valid.")
            await self._sessions.end(request.cookies.get(COOKIE))
            self._record(request, "done", session.user)
        response = RedirectResponse(f"{LOGIN}?{_SIGNED_OUT}", 303)
        response.delete_cookie(COOKIE)
        return response

    def _set_cookie(self, request: Request, response: Response, cookie: str) -> None:
        response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=self._is_secure(request))

    def _without_login_cookie(self, response: Response) -> Response:
        response.delete_cookie(_LOGIN_COOKIE, path=LOGIN)
        return response

    def _is_secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or (self._oidc is not None and self._oidc.secure)

    def _problem(self, request: Request, status: int, message: str) -> Response:
        if accepts_json(request.headers.get("accept", "")):
            return JSONResponse({"error": message}, status)
        oidc = self._oidc is not None
        return plain_page("refused", status, title="Not possible", message=message, oidc=oidc)

    def _record(
        self,
        request: Request,
        result: str,
        user: str = "",
        cluster: str = "",
        role: str | None = None,
        *,
        stranger: bool = False,
    ) -> None:
        entry = AuditEntry(
            f"{request.method} {request.url.path}",
            result,
            user=user or None,
            role=role,
            address=_address(request),
            cluster=cluster or None,
        )
        if stranger:
            self._audit.record_stranger(entry)
        else:
            self._audit.record(entry)


def _base_url(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host
