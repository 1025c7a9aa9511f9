"""Signing in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from moldau.console.web.call import Refused, accepts_json
from moldau.console.web.forms import InvalidField, read_form
from moldau.console.web.rendering import plain_page
from moldau.console.web.sessions import COOKIE, Session, Sessions
from moldau.http.errors import ApiError

_MOST_BYTES = 16 * 1024


async def login(request: Request, sessions: Sessions, *, secure: bool) -> Response:
    if request.method != "POST":
        return plain_page("login", 200, title="Sign in", user="", message="")
    user = ""
    try:
        form = await read_form(request, _MOST_BYTES)
        user = form.text("user", "User")
        cookie = await sessions.sign_in(user, form.get("password", ""))
    except (Refused, InvalidField, ApiError) as error:
        status = 400 if isinstance(error, InvalidField) else error.status
        if accepts_json(request.headers.get("accept", "")):
            return JSONResponse({"error": error.message}, status)
        return plain_page("login", status, title="Sign in", user=user, message=error.message)
    response: Response = RedirectResponse("/", 303)
    if accepts_json(request.headers.get("accept", "")):
        # A script sends the token with every change, as X-CSRF-Token.
        session = sessions.find(cookie)
        response = JSONResponse({"user": user, "token": "" if session is None else session.token})
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)
    return response


async def logout(request: Request, sessions: Sessions, session: Session | None) -> Response:
    if request.method != "POST":
        return RedirectResponse("/", 303)
    if session is not None:
        form = await read_form(request, _MOST_BYTES)
        if form.get("token", "") != session.token:
            return plain_page("problem_plain", 403, title="Not possible", message="The token is not valid.")
        await sessions.sign_out(request.cookies.get(COOKIE))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response
