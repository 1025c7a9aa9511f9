"""A request to the console, and the three answers a page or an action can give.

A handler returns a `Page` (shown as HTML, or as JSON if the client accepts that) or `Done` (a completed
action), and raises `Refused` or `KafkaError`. Anything else it returns is an ordinary response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from starlette.requests import Request

from moldau.client.admin.acls import AclOperation
from moldau.client.admin.client import AsyncAdminClient
from moldau.client.wire.errors import check
from moldau.console.cluster.snapshot import Snapshot, Topic
from moldau.console.cluster.view import ClusterView
from moldau.console.login.roles import Role
from moldau.console.settings import Login
from moldau.console.web.forms import Form, read_form
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest

if TYPE_CHECKING:
    from moldau.console.services import Services
    from moldau.console.settings import ConsoleSettings

__all__ = ["Call", "CopyAs", "Done", "Page", "Refused", "not_found"]


class Refused(Exception):
    """A request that is refused, with the status and a sentence for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def not_found(what: str) -> Refused:
    return Refused(404, f"{what} does not exist.")


class CopyAs(NamedTuple):
    """The same as a command, a curl line and Python; those that are empty are not offered."""

    command: str = ""
    curl: str = ""
    python: str = ""


NOTHING: Final = CopyAs()


@dataclass(frozen=True, slots=True)
class Page:
    """`data` is the JSON of the page, and what its template sees; `extra` is for the template alone."""

    template: str
    title: str
    data: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    copy: CopyAs = NOTHING
    status: int = 200


@dataclass(frozen=True, slots=True)
class Done:
    """A completed action: a sentence for the user, where to continue, and data for scripts."""

    message: str
    location: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


class Call:
    def __init__(
        self,
        request: Request,
        view: ClusterView,
        settings: ConsoleSettings,
        services: Services,
        *,
        base: str = "",
        user: str | None = None,
        role: Role = Role.ADMIN,
    ) -> None:
        self.request = request
        self.view = view
        self.settings = settings
        self.services = services
        #: The prefix of paths in this cluster; empty for the first one.
        self.base = base
        self.user = user
        self.role = Role.VIEWER if settings.read_only else role
        #: The fields that the handler has read.
        self.fields: Mapping[str, str] = {}

    @property
    def admin(self) -> AsyncAdminClient:
        return self.view.admin

    def path(self, name: str) -> str:
        value: str = self.request.path_params[name]
        return value

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    async def form(self) -> Form:
        form = await read_form(self.request, self.settings.max_request_bytes)
        self.fields = form
        return form

    def require(self, role: Role) -> None:
        """Raise `Refused` unless the user has a role."""
        if self.role >= role:
            return
        if self.settings.read_only:
            raise Refused(403, "The console is read-only.")
        raise Refused(403, f"This needs the role {role.label}; you have the role {self.role.label}.")

    async def require_alter_cluster(self) -> None:
        """Raise `Refused` if ACLs decide, and do not allow the user to change the cluster."""
        if self.settings.login is not Login.SCRAM:
            return
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)

        async def ask() -> int:
            answer = await self.view.cluster.ask_any(request)
            check(answer.error_code, answer.error_message)
            return int(answer.cluster_authorized_operations)

        operations = await self.view.shared.get("cluster operations", ask)
        if not operations >> AclOperation.ALTER & 1:
            raise Refused(
                403, "Changes of schemas, connectors and pipelines need the operation ALTER on the cluster."
            )

    def url(self, *parts: str) -> str:
        """Return the path of a page of this cluster."""
        return self.base + "/" + "/".join(quote(part, safe="") for part in parts)

    @property
    def here(self) -> str:
        """The path and the query of this request, as they were sent."""
        path: str = self.request.scope["raw_path"].decode("latin-1")
        query: str = self.request.scope["query_string"].decode("latin-1")
        return f"{path}?{query}" if query else path

    @property
    def wants_json(self) -> bool:
        return accepts_json(self.request.headers.get("accept", ""))

    async def snapshot(self) -> Snapshot:
        return await self.view.watch()

    async def topic(self, name: str | None = None) -> Topic:
        """Return the topic of the path; refresh once if it is not known, then 404."""
        name = self.path("topic") if name is None else name
        found = (await self.view.watch()).topics.get(name)
        if found is None:
            found = (await self.view.refreshed()).topics.get(name)
        if found is None:
            raise not_found(f"Topic {name}")
        return found


def accepts_json(accept: str) -> bool:
    """Return whether a client prefers JSON over HTML."""
    for part in accept.split(","):
        kind = part.split(";")[0].strip().lower()
        if kind in ("text/html", "application/xhtml+xml"):
            return False
        if kind == "application/json":
            return True
    return False


def paged(items: Sequence[Any], page: int, size: int) -> tuple[Sequence[Any], int]:
    """Return the items of a page (from 1 on) and the number of pages."""
    pages = max(1, -(-len(items) // size))
    begin = (min(max(page, 1), pages) - 1) * size
    return items[begin : begin + size], pages
