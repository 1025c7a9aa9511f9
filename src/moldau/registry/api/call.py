"""A request to the registry: path parameters, query, body; and a route that answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from moldau.http.errors import ApiError
from moldau.http.requests import parse_json
from moldau.registry.authorization import Access
from moldau.registry.state.names import (
    ALL_CONTEXTS,
    context_prefix,
    in_context,
    normalize,
    parse_name,
    relative_to,
)
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest, schema_request
from moldau.registry.state.store import Version
from moldau.registry.state.subjects import NUMBER, parse_version

_NOT_FOUND: Final = "HTTP 404 Not Found"
#: A body of this size takes some milliseconds.
_LARGE: Final = 16 * 1024
_MANY: Final = 10
#: Queries that need a parsed schema.
_PARSING: Final = ("format", "findTags")
#: Keywords of JSON Schema whose comparison multiplies, and references, whose targets may be large.
_COMBINING: Final = (b"oneOf", b"anyOf", b"allOf", b"$ref", b'"references"')


class Call:
    def __init__(
        self,
        parameters: dict[str, str],
        query: bytes,
        body: bytes,
        context: str | None,
        access: Access | None = None,
    ) -> None:
        self.parameters = parameters
        self.access = access or Access()
        self._query = query
        self._body = body
        #: The context of a path below `/contexts/{context}`.
        self.context = context

    @cached_property
    def query(self) -> dict[str, list[str]]:
        if not self._query:
            return {}
        text = self._query.decode("latin-1")
        return parse_qs(text, keep_blank_values=True, errors="surrogateescape")

    def text(self, name: str, default: str = "") -> str:
        values = self.query.get(name)
        return values[0] if values else default

    def texts(self, name: str) -> list[str]:
        return self.query.get(name, [])

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        return integer(self.text(name, str(default)))

    @property
    def page(self) -> tuple[int, int]:
        """Offset and limit."""
        return self.number("offset", 0), self.number("limit", -1)

    def json(self) -> Any:
        if not self._body:
            raise ApiError(422, 422, "The request has no body.")
        return parse_json(self._body)

    def schema(self, subject: str) -> SchemaRequest:
        """Return the schema of the body; `ApiError` 403 if it refers to a subject that is denied."""
        request = schema_request(subject, self.json())
        self.access.require_references(subject, request.content.references)
        return request

    def is_heavy(self, registry: Registry) -> bool:
        """Return whether parsing or comparing a schema may take longer than other clients can wait."""
        body = self._body
        if len(body) > _LARGE or any(word in body for word in _COMBINING):
            return True
        if any(self.text(name) for name in _PARSING):
            return True
        if not body or "subject" not in self.parameters:
            return False
        subject = self.subject(registry)
        found = registry.store.subjects.get(subject)
        latest = None if found is None else found.latest()
        if found is None or latest is None:
            return False
        requested = registry.store.version(subject, parse_version(self.parameters.get("version", "latest")))
        if any(_is_large(each) for each in (latest, requested) if each is not None):
            return True
        return found.live > _MANY and registry.config(subject)["compatibilityLevel"].endswith("_TRANSITIVE")

    def subject(self, registry: Registry) -> str:
        """The subject of the path, with the context of the path; an alias is replaced."""
        name = normalize(self._in_context(self.parameters["subject"]))
        alias = registry.store.configs.get(name, {}).get("alias")
        return relative_to(name, alias) if alias else name

    def subjects(self, registry: Registry) -> list[str | None]:
        """Return all subjects that a request may concern, for authorization; [None] if it is about none.

        Besides the one in the path: the subject that it is an alias of, and, as a bare name is searched in
        all contexts, those of the same name, unless it has what is requested itself.
        """
        if "subject" not in self.parameters:
            return [None]
        subject, store = self.subject(registry), registry.store
        given = normalize(self._in_context(self.parameters["subject"]))
        found: dict[str | None, None] = dict.fromkeys((given, subject))
        name = parse_name(subject)
        if not name.prefix and not self._has_requested(registry, subject):
            others = (name._replace(context=context).qualified for context in store.contexts)
            found.update((other, None) for other in others if other in store.subjects)
        return list(found)

    def _has_requested(self, registry: Registry, subject: str) -> bool:
        """Return whether a subject exists, with the version of the path if there is one."""
        number = self.parameters.get("version")
        if number is None:
            return subject in registry.store.subjects
        version = registry.store.version(subject, parse_version(number))
        return version is not None and not version.deleted

    @property
    def setting_scope(self) -> str | None:
        """The subject of a setting; None for the top level. Below a context, the context itself."""
        name = self.parameters.get("subject")
        if name is None:
            return None if self.context is None else context_prefix(self.context) or None
        return self._in_context(name)

    @property
    def subject_filter(self) -> str | None:
        """The subject of the query, or the context of the path."""
        values = self.query.get("subject")
        if values:
            return self._in_context(values[0])
        return None if self.context is None else context_prefix(self.context)

    def prefix(self, default: str) -> str:
        values = self.query.get("subjectPrefix")
        if self.context is None:
            return values[0] if values else default
        return self._in_context(values[0]) if values else context_prefix(self.context)

    def _in_context(self, name: str) -> str:
        return name if self.context is None else in_context(self.context, name)


def _is_large(version: Version) -> bool:
    return len(version.content.text) > _LARGE or bool(version.content.references)


def integer(text: str) -> int:
    """Parse a number of a path or query; another text names no resource."""
    if NUMBER.fullmatch(text) is None:
        raise ApiError(404, 404, _NOT_FOUND)
    return int(text)


ALL = ALL_CONTEXTS


class Route(NamedTuple):
    """An endpoint.

    `writes` if it may need records, and thus the leader. `immutable` if what it finds does not change, so
    that every instance answers from what it has; permanent deletes reach it a moment later.
    """

    method: str
    path: str
    summary: str
    decide: Callable[[Registry, Call], Decision]
    writes: bool = False
    operation: str = ""
    immutable: bool = False
    #: Instead of `decide`, for requests that need several decisions.
    run: Callable[[Any, Call], Awaitable[Decision]] | None = None

    def is_immutable(self, call: Call) -> bool:
        """Return whether the answer to a call does not change; the highest id does."""
        return self.immutable and not call.flag("fetchMaxId")
