"""Registering schemas, with all that a request may leave to the registry: text, contract, id, version.

A schema that the subject has already is not registered again; this works in read-only modes, too.
"""

from __future__ import annotations

from typing import Final

from moldau.registry.state import contracts, errors, replies
from moldau.registry.state.associations.queries import is_strong
from moldau.registry.state.canonical import IMPORT_MODES, canonicalize
from moldau.registry.state.compatibility import compared_versions, incompatibilities
from moldau.registry.state.contracts import Json
from moldau.registry.state.fields import change_tags, tags_of
from moldau.registry.state.lookup import Match, by_guid, digest, equal_version, find, formatted, with_contract
from moldau.registry.state.names import DEFAULT_CONTEXT, context_of, is_valid_subject, parse_name, relative_to
from moldau.registry.state.records import Content, KeyValue, context_record, schema_record, schema_tombstone
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest
from moldau.registry.state.store import Version
from moldau.schemas.schema import InvalidSchema, ParsedSchema

READ_ONLY: Final = frozenset({"READONLY", "READONLY_OVERRIDE"})
_MAX_ID: Final = (1 << 31) - 1


def require_writable(registry: Registry, subject: str | None) -> None:
    """Error 42205 if the subject is in a read-only mode."""
    if registry.mode(subject) in READ_ONLY:
        name = parse_name(subject or "")
        raise errors.not_permitted(
            f"Subject {'null' if subject is None else subject} in context {name.prefix} is in read-only mode"
        )


def register(
    registry: Registry,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    force: bool = False,
    format: str = "",
    given_subject: str = "",
) -> Decision:
    """Register a schema under a subject, unless it is there."""
    subject = request.subject
    contracts.validate_rule_set(request.content.rule_set)
    given = given_subject or subject
    if not is_valid_subject(given, allow_empty=not registry.settings.reject_empty_subject):
        raise errors.invalid_subject(given)
    config = registry.config(subject)
    normalize = normalize or bool(config.get("normalize"))
    existing = None
    if not (request.tags_to_add or request.tags_to_remove or request.propagate_tags or _has_contract(config)):
        existing = _existing(registry, config, request, normalize)
    if existing is not None:
        records: tuple[KeyValue, ...] = ()
        version, schema_id, content, stored = existing[1:]
        reply = replies.registered(version, schema_id, content, formatted(registry, subject, content, format))
        if stored is not None:
            reply["ts"], reply["deleted"] = stored.timestamp, stored.deleted
    else:
        records, version, schema_id, content = _register_new(
            registry, config, _with_tags(registry, request), normalize, force
        )
        reply = replies.registered(version, schema_id, content, formatted(registry, subject, content, format))
    return Decision(records, reply)


def _has_contract(config: Json) -> bool:
    names = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
    return any(config.get(name) is not None for name in names)


def _existing(registry: Registry, config: Json, request: SchemaRequest, normalize: bool) -> Match | None:
    """Return the version that the request asks for, if it exists."""
    latest = request.version == -1
    match = find(registry, config, request, normalize=normalize, deleted=False, latest_only=latest)
    if match is None:
        return None
    if request.version == 0 or latest:
        return match if request.schema_id in (-1, match.schema_id) or request.schema_id < 0 else None
    if match.schema_id != request.schema_id:
        return None
    if match.version == request.version:
        return match
    older = registry.store.version(request.subject, request.version)
    if older is not None and not older.deleted and older.schema_id == match.schema_id:
        return Match(request.subject, older.number, older.schema_id, older.content, older)
    return None


def _with_tags(registry: Registry, request: SchemaRequest) -> SchemaRequest:
    if not (request.tags_to_add or request.tags_to_remove):
        return request
    text = change_tags(
        _parsed(registry, request.subject, request.content), request.tags_to_add, request.tags_to_remove
    )
    # The tagged schema is another version than an equal one without tags.
    return request._replace(content=request.content._replace(text=text), version=request.version or -1)


def _parsed(registry: Registry, subject: str, content: Content) -> ParsedSchema:
    try:
        return registry.parse(subject, content).parsed
    except InvalidSchema as error:
        raise errors.invalid_schema(
            f"Invalid schema of type {content.schema_type}, details: {error}"
        ) from None


def _check_mode(registry: Registry, request: SchemaRequest) -> str:
    subject = request.subject
    require_writable(registry, subject)
    mode = registry.mode(subject)
    where = f"Subject {subject} in context {parse_name(subject).prefix}"
    if request.schema_id >= 0:
        if mode not in IMPORT_MODES:
            raise errors.not_permitted(f"{where} is not in import mode")
    elif mode != "READWRITE":
        raise errors.not_permitted(f"{where} is not in read-write mode")
    return mode


def _register_new(
    registry: Registry, config: Json, request: SchemaRequest, normalize: bool, force: bool
) -> tuple[tuple[KeyValue, ...], int, int, Content]:
    """Return the records, version, id and content of a registration."""
    mode = _check_mode(registry, request)
    importing = mode in IMPORT_MODES
    subject, store = request.subject, registry.store
    found = store.subjects.get(subject)
    latest = None if found is None else found.latest()
    next_version = 1 if found is None else found.highest() + 1
    if not importing:
        request = _populated(registry, config, request, latest, next_version)
    if request.is_empty:
        raise errors.invalid_schema("Empty schema")
    new = request.schema_id < 0 and bool(
        config.get("validateNewSchemas", registry.settings.validate_new_schemas)
    )
    content, parsed = canonicalize(registry, request, config, new=new, normalize=normalize)
    _refuse_strong_references(registry, subject, content)
    schema_id = request.schema_id
    known = store.id_of(context_of(subject), digest(content))
    if known is not None and schema_id in (-1, known):
        schema_id = known
        match = by_guid(registry, subject, content)
        if request.version == 0 and match is not None and _is_live(registry, subject, match.version):
            return (), match.version, known, content
    if request.version == 0:
        equal = equal_version(registry, subject, content, parsed, deleted=False, schema_id=schema_id)
        if equal is not None:
            return (), equal.number, equal.schema_id, content
    if not importing and not force:
        previous = [] if found is None else compared_versions(config, found)
        if findings := incompatibilities(registry, subject, config, content, parsed, previous):
            raise errors.incompatible(subject, findings)
    if request.version <= 0:
        version = next_version
    else:
        version = request.version
        if version != next_version and not importing:
            raise errors.invalid_schema("Version is not one more than previous version")
    schema_id = _checked_id(registry, subject, schema_id, content)
    return _records(registry, subject, version, schema_id, content), version, schema_id, content


def _is_live(registry: Registry, subject: str, number: int) -> bool:
    version = registry.store.version(subject, number)
    return version is not None and not version.deleted


def _populated(
    registry: Registry, config: Json, request: SchemaRequest, latest: Version | None, next_version: int
) -> SchemaRequest:
    """Return the request with what it inherits from the latest version and the config."""
    content = request.content
    if request.is_empty:
        if latest is None:
            raise errors.invalid_schema("Empty schema")
        old = latest.content
        content = content._replace(schema_type=old.schema_type, text=old.text, references=old.references)
    if request.propagate_tags and latest is not None:
        tags = tags_of(_parsed(registry, request.subject, latest.content), ["*"])
        if tags:
            content = content._replace(
                text=change_tags(_parsed(registry, request.subject, content), tags, ())
            )
    request = request._replace(content=content)
    return with_contract(config, request, None if latest is None else latest.content, next_version)


def _refuse_strong_references(registry: Registry, subject: str, content: Content) -> None:
    for reference in content.references:
        if is_strong(registry, relative_to(subject, reference.subject)):
            raise errors.not_permitted(
                f"Subject '{reference.subject}' has a strong association and cannot be referenced"
            )


def _checked_id(registry: Registry, subject: str, schema_id: int, content: Content) -> int:
    """Return the id of the new version: the given one, if no other schema has it, or the next."""
    context = context_of(subject)
    space = registry.store.id_space(context)
    if schema_id < 0:
        if space.highest_id >= _MAX_ID:
            raise errors.invalid_schema("All schema ids of the context are used.")
        return space.highest_id + 1
    existing = space.contents.get(schema_id) if schema_id in space.uses else None
    if existing is not None and existing != content:
        prefix = parse_name(subject).prefix
        raise errors.not_permitted(
            f"Overwrite new schema with id {schema_id} in context {prefix} is not permitted."
        )
    if schema_id > _MAX_ID:
        raise errors.invalid_schema(f"The id {schema_id} is larger than {_MAX_ID}.")
    return schema_id


def _records(
    registry: Registry, subject: str, version: int, schema_id: int, content: Content
) -> tuple[KeyValue, ...]:
    """Return the records of a new version: it replaces soft-deleted versions of the same schema."""
    store, context = registry.store, context_of(subject)
    records = []
    if context != DEFAULT_CONTEXT and context not in store.contexts:
        records.append(context_record(context))
    found = store.subjects.get(subject)
    if found is not None and found.live < len(found.versions):
        records += [
            schema_tombstone(subject, each.number)
            for each in found.versions.values()
            if each.deleted and each.schema_id == schema_id and each.number < version
            if not store.referencing(subject, each.number, deleted=True)
        ]
    records.append(schema_record(subject, version, schema_id, content, False))
    return tuple(records)
