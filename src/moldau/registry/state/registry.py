"""What decisions are made about: the store, the settings of the service, and parsed schemas.

Schemas are parsed and compared when it is needed, and the results that were used last are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moldau.registry.state.names import DEFAULT_CONTEXT, GLOBAL_CONTEXT, parse_name, relative_to
from moldau.registry.state.recent import Recent
from moldau.registry.state.records import Content, Json, KeyValue
from moldau.registry.state.store import Store
from moldau.schemas.schema import InvalidSchema, ParsedSchema, Reference, parse

_MAX_PARSED: Final = 1000
_MAX_COMPARED: Final = 20_000
#: The memory of the results that are kept.
_MAX_BYTES: Final = 4 << 20
#: That of a parsed schema for each character of its text; comparisons of JSON Schema need most of it.
_BYTES_PER_CHARACTER: Final = {"AVRO": 10, "JSON": 40, "PROTOBUF": 15}
#: Settings of the subject that the top level supplements.
_INHERITED: Final = (
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityPolicy",
    "compatibilityGroup",
)


class Limit(NamedTuple):
    """The default and the largest number of results of a list."""

    default: int
    most: int

    def of(self, given: int) -> int:
        """Return the number of results; as in Confluent's, the default if the given one is too large."""
        return given if 0 < given <= self.most else self.default


_SCHEMAS: Final = Limit(1000, 1000)
_SUBJECTS: Final = Limit(20_000, 20_000)


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Settings of the service that decisions depend on."""

    compatibility_level: str = "BACKWARD"
    mode_mutability: bool = True
    validate_fields: bool = False
    validate_new_schemas: bool = True
    reject_empty_subject: bool = False
    reference_versions_strict: bool = False
    search_limit: Limit = _SCHEMAS
    subject_search_limit: Limit = _SUBJECTS


class Decision(NamedTuple):
    """The records to append, and the reply once they are stored."""

    records: tuple[KeyValue, ...]
    reply: Any
    status: int = 200


class MissingReference(InvalidSchema):
    """A schema refers to a version that does not exist."""


class Resolved(NamedTuple):
    """A parsed schema, with `-1` in its references replaced by the latest version."""

    parsed: ParsedSchema
    references: tuple[Reference, ...]


class Registry:
    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.store = Store()
        self._parsed: Recent[ParsedSchema] = Recent(_MAX_PARSED, _MAX_BYTES)
        #: Canonical forms of requests, and findings of comparisons.
        self.canonical: Recent[Any] = Recent(_MAX_PARSED, _MAX_BYTES)
        self.compared: Recent[tuple[str, ...]] = Recent(_MAX_COMPARED, 2 * _MAX_BYTES)

    def parse(self, subject: str, content: Content, *, new: bool = False) -> Resolved:
        """Parse a schema of a subject; `InvalidSchema` if it, or one of its references, is not valid.

        A new schema must not refer to soft-deleted versions.
        """
        if not content.references:
            return Resolved(self._parse(content, ()), ())
        texts: dict[str, str] = {}
        self._resolve(subject, content.references, texts, {}, new)
        latest = tuple(
            reference._replace(version=self._target(subject, reference, new)[1])
            if reference.version == -1
            else reference
            for reference in content.references
        )
        return Resolved(self._parse(content, tuple(texts.items())), latest)

    def _parse(self, content: Content, references: tuple[tuple[str, str], ...]) -> ParsedSchema:
        key = (content.schema_type, content.text, references)
        parsed = self._parsed.get(key)
        if parsed is None:
            parsed = parse(content.schema_type, content.text, dict(references))
            self._parsed.put(key, parsed, memory_of(content, (text for _, text in references)))
        return parsed

    def _resolve(
        self,
        subject: str,
        references: Iterable[Reference],
        texts: dict[str, str],
        visited: dict[str, int],
        new: bool,
    ) -> None:
        """Collect the texts of references, each after those it uses; iterative, as chains may be long."""
        stack = [(subject, iter(references), "")]
        pending: dict[str, str] = {}
        while stack:
            parent, remaining, name = stack[-1]
            reference = next(remaining, None)
            if reference is None:
                stack.pop()
                if name:
                    texts[name] = pending.pop(name)
                continue
            target, number, content = self._target(parent, reference, new)
            if reference.name in visited:
                if self.settings.reference_versions_strict and visited[reference.name] != number:
                    raise InvalidSchema(
                        f'Conflicting reference versions for "{reference.name}": '
                        f"version {visited[reference.name]} and version {number}"
                    )
                continue
            visited[reference.name] = number
            pending[reference.name] = content.text
            stack.append((target, iter(content.references), reference.name))

    def _target(self, parent: str, reference: Reference, new: bool) -> tuple[str, int, Content]:
        name = relative_to(parent, reference.subject)
        version = self.store.version(name, reference.version)
        if version is None or (new and version.deleted):
            raise MissingReference(
                f'No schema reference found for subject "{name}" and version {reference.version}'
            )
        return name, version.number, version.content

    # Settings in scope

    def own_config(self, subject: str | None) -> Json | None:
        """Return the config stored for a subject, context or the top level, with the default level."""
        config = self.store.configs.get(subject)
        if config is not None:
            return self._with_level(config)
        if subject is None or parse_name(subject).context == GLOBAL_CONTEXT:
            return {"compatibilityLevel": self.settings.compatibility_level}
        return None

    def config(self, subject: str | None) -> Json:
        """Return the config that applies to a subject: its own, its context's, or the top level's."""
        own = None if subject is None else self.own_config(subject)
        if own is None:
            return self._inherited_config(subject)
        top = self.own_config(None) or {}
        return {**{key: top[key] for key in _INHERITED if key in top}, **own}

    def _inherited_config(self, subject: str | None) -> Json:
        for scope in _scopes(subject):
            config = self.store.configs.get(scope)
            if config is not None:
                return self._with_level(config)
        return {"compatibilityLevel": self.settings.compatibility_level}

    def _with_level(self, config: Json) -> Json:
        if config.get("compatibilityLevel"):
            return config
        return {**config, "compatibilityLevel": self.settings.compatibility_level}

    def own_mode(self, subject: str | None) -> str | None:
        mode = self.store.modes.get(subject)
        if mode is None and (subject is None or parse_name(subject).context == GLOBAL_CONTEXT):
            return "READWRITE"
        return mode

    def mode(self, subject: str | None) -> str:
        """Return the mode that applies to a subject."""
        for scope in (subject, *_scopes(subject)):
            mode = self.store.modes.get(scope)
            if mode is not None:
                return mode
        return "READWRITE"


def memory_of(content: Content, references: Iterable[str] = ()) -> int:
    """Return about how many bytes a parsed schema occupies; it contains those that it refers to."""
    characters = len(content.text) + sum(map(len, references))
    return characters * _BYTES_PER_CHARACTER[content.schema_type]


def _scopes(subject: str | None) -> tuple[str | None, str]:
    """Return where settings of a subject without its own are: its context, and the global one."""
    name = parse_name(subject or "")
    return (None if name.context == DEFAULT_CONTEXT else name.prefix), f":{GLOBAL_CONTEXT}:"
