"""Where the console continues after a login: paths of its own pages, never another site."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request

_MAX_LENGTH: Final = 2000
START: Final = "/"


def safe_path(text: str) -> str:
    """Return the path and the query of a page of this console; the start page for anything else."""
    if not text.startswith("/") or text.startswith("//") or len(text) > _MAX_LENGTH:
        return START
    if "\\" in text or any(each <= " " or each == "\x7f" for each in text):
        return START
    path = text.partition("?")[0]
    if path in ("/login", "/logout") or path.startswith(("/login/", "/static/")) or path.endswith("/events"):
        return START
    return text


def requested_page(request: Request) -> str:
    """Return the page a user was on: of the request, or of the page that sent it in the background."""
    current = request.headers.get("hx-current-url")
    if current is not None:
        try:
            parts = urlsplit(current)
        except ValueError:
            return START
        return safe_path(f"{parts.path}?{parts.query}" if parts.query else parts.path)
    if request.method not in ("GET", "HEAD"):
        return START
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope["raw_path"].decode("latin-1")
    return safe_path(f"{path}?{query}" if query else path)


def login_path(page: str, cluster: str = "") -> str:
    """Return the path of the login that continues at `page`."""
    fields = {"cluster": cluster} if cluster else {}
    if page != START:
        fields["next"] = page
    return f"/login?{urlencode(fields)}" if fields else "/login"
