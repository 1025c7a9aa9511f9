"""Answers: templates as HTML, or the same data as JSON. All values are escaped by the templates."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, JSONResponse, Response

from moldau.console.login.roles import Role
from moldau.console.settings import Login
from moldau.console.web import formats
from moldau.console.web.call import Call, Page

#: The navigation: name and path.
NAVIGATION = (
    ("Overview", ""),
    ("Topics", "topics"),
    ("Groups", "groups"),
    ("Brokers", "brokers"),
    ("ACLs", "acls"),
    ("Users", "users"),
    ("Quotas", "quotas"),
    ("Schemas", "schemas"),
    ("Connectors", "connectors"),
    ("Pipelines", "pipelines"),
    ("SQL", "sql"),
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("moldau.console", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": formats.count,
        "size": formats.size,
        "time": formats.time,
        "duration": formats.duration,
        "known": formats.known,
    }
    environment.globals |= {"navigation": NAVIGATION, "version": version("moldau")}
    return environment


def fragment(template: str, **values: Any) -> str:
    """Render a part of a page."""
    return _environment().get_template(template).render(**values)


def answer_page(call: Call, page: Page) -> Response:
    if call.wants_json:
        return JSONResponse(jsonable(page.data), page.status)
    session = call.request.scope.get("moldau.session")
    values = {
        **page.data,
        **page.extra,
        "title": page.title,
        "copy": page.copy,
        "call": call,
        "cluster": call.view.name,
        "clusters": list(call.settings.clusters),
        # What the user's role allows; actions that it does not allow are not shown.
        "read_only": call.role < Role.EDITOR,
        "administers": call.role >= Role.ADMIN,
        "role": _role(call),
        "user": call.user,
        "csrf": "" if session is None else session.token,
        "path": call.request.url.path.removeprefix(call.base) or "/",
        "section": _section(call),
        "snapshot": call.view.snapshot,
    }
    return HTMLResponse(fragment(f"pages/{page.template}.html", **values), page.status)


def _role(call: Call) -> str:
    """Return the role to show: users of a cluster's ACLs have none."""
    if call.settings.read_only:
        return "Read-only"
    return call.role.label.capitalize() if call.settings.login is Login.OIDC else ""


def _section(call: Call) -> str:
    """Return the entry of the navigation that a page belongs to; another cluster has it, too."""
    first = call.request.url.path.removeprefix(call.base).strip("/").partition("/")[0]
    return first if first in {path for _, path in NAVIGATION} else ""


def plain_page(template: str, status: int, **values: Any) -> Response:
    """Render a page without a cluster: the login and errors before it."""
    return HTMLResponse(fragment(f"pages/{template}.html", **values), status)


def jsonable(value: Any) -> Any:
    """Return data that JSON can represent: bytes and other values as text."""
    return json.loads(json.dumps(value, default=str))
