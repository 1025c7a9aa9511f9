"""Finding a version of a subject by its content.

Most look-ups are answered by the GUID of the canonical text. Other versions can be equal, too: a schema
without references to one that has the same text with them resolved, and schemas that differ only in the
version that their metadata name (`confluent:version`).
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from moldau.http.errors import ApiError
from moldau.registry.state import contracts, errors, replies
from moldau.registry.state.canonical import canonicalize
from moldau.registry.state.contracts import Json
from moldau.registry.state.names import context_of, parse_name
from moldau.registry.state.records import Content
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest
from moldau.registry.state.store import Version, is_canonical
from moldau.schemas.schema import InvalidSchema, ParsedSchema, SchemaType


class Match(NamedTuple):
    """A version with the content of a request; `stored` if it was found by comparison."""

    subject: str
    version: int
    schema_id: int
    content: Content
    stored: Version | None = None

    def reply(self, text: str | None = None) -> Json:
        if self.stored is not None:
            return replies.of_version(self.subject, self.stored, text)
        return replies.with_subject(self.subject, self.version, self.schema_id, self.content, text)


def look_up(
    registry: Registry, request: SchemaRequest, *, normalize: bool, deleted: bool, format: str
) -> Decision:
    """Answer which version of the subject has this schema; a bare subject is searched in all contexts."""
    match = _with_inherited_contract(registry, request, normalize, deleted)
    name = parse_name(request.subject)
    if match is None and not name.prefix:
        for context in registry.store.contexts:
            moved = request._replace(subject=name._replace(context=context).qualified)
            try:
                match = _with_inherited_contract(registry, moved, normalize, deleted)
            except ApiError as error:
                if error.error_code != errors.INVALID_SCHEMA:
                    raise
            if match is not None:
                break
    if match is None:
        if not registry.store.has_subjects(request.subject, deleted=deleted):
            raise errors.subject_not_found(request.subject)
        raise errors.schema_not_found()
    return Decision((), match.reply(formatted(registry, match.subject, match.content, format)))


def formatted(registry: Registry, subject: str, content: Content, format: str) -> str | None:
    """Return the text in a format, or None for the stored one."""
    if not format.strip():
        return None
    try:
        return registry.parse(subject, content).parsed.formatted(format)
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None


def _with_inherited_contract(
    registry: Registry, request: SchemaRequest, normalize: bool, deleted: bool
) -> Match | None:
    if request.is_empty:
        return None
    config = registry.config(request.subject)
    match = find(registry, config, request, normalize=normalize, deleted=deleted)
    latest = registry.store.version(request.subject, -1)
    if match is not None or latest is None:
        return match
    inherited = with_contract(config, request, latest.content, None)
    if inherited.content == request.content:
        return None
    return find(registry, config, inherited, normalize=normalize, deleted=deleted)


def with_contract(
    config: Json, request: SchemaRequest, previous: Content | None, new_version: int | None
) -> SchemaRequest:
    """Return the request with metadata and rules of the previous version and of the config."""
    content = request.content
    metadata, rules = content.metadata, content.rule_set
    if previous is not None:
        metadata = previous.metadata if metadata is None else metadata
        rules = previous.rule_set if rules is None else rules
    metadata = contracts.merge_metadata(config.get("defaultMetadata"), metadata)
    metadata = contracts.merge_metadata(metadata, config.get("overrideMetadata"))
    rules = contracts.merge_rule_sets(config.get("defaultRuleSet"), rules)
    rules = contracts.merge_rule_sets(rules, config.get("overrideRuleSet"))
    if new_version is not None and (
        request.version != 0 or contracts.property_of(metadata, contracts.CONFLUENT_VERSION) is not None
    ):
        metadata = contracts.with_confluent_version(metadata, new_version)
    return request._replace(content=content._replace(metadata=metadata, rule_set=rules))


def find(
    registry: Registry,
    config: Json,
    request: SchemaRequest,
    *,
    normalize: bool,
    deleted: bool,
    latest_only: bool = False,
) -> Match | None:
    """Return the version of the subject with this content."""
    if request.is_empty:
        return None
    content, parsed = canonicalize(registry, request, config, new=False, normalize=normalize)
    subject = request.subject
    if latest_only:
        latest = registry.store.version(subject, -1)
        if latest is not None and is_equal(registry, subject, content, parsed, latest):
            return Match(subject, latest.number, latest.schema_id, latest.content, latest)
        return None
    match = by_guid(registry, subject, content)
    if match is not None and (
        deleted or not registry.store.subjects[subject].versions[match.version].deleted
    ):
        return match
    version = equal_version(registry, subject, content, parsed, deleted=deleted)
    return (
        None
        if version is None
        else Match(subject, version.number, version.schema_id, version.content, version)
    )


def digest(content: Content) -> bytes:
    return UUID(replies.content_guid(content)).bytes


def by_guid(registry: Registry, subject: str, content: Content) -> Match | None:
    """Return the version of the subject with exactly this content, which may be soft-deleted."""
    context = context_of(subject)
    schema_id = registry.store.id_of(context, digest(content))
    use = None if schema_id is None else registry.store.use_of(context, schema_id, subject)
    if schema_id is None or use is None:
        return None
    return Match(subject, use[1], schema_id, content)


def equal_version(
    registry: Registry,
    subject: str,
    content: Content,
    parsed: ParsedSchema,
    *,
    deleted: bool,
    schema_id: int = -1,
) -> Version | None:
    """Return the highest version that is equal in all that matters, though it has another GUID."""
    found = registry.store.subjects.get(subject)
    if found is None:
        return None
    plain = not content.references and contracts.confluent_version(content.metadata) is None
    # Plain versions with another GUID have another text: 10,000 of them need not be compared.
    if (
        plain
        and not found.special
        and digest(content) not in registry.store.id_space(context_of(subject)).by_guid
    ):
        return None
    for version in reversed(found.versions.values()):
        if version.deleted and not deleted:
            continue
        if plain and not found.special and version.content.text != content.text:
            continue
        if schema_id >= 0 and version.schema_id != schema_id:
            continue
        if is_equal(registry, subject, content, parsed, version):
            return version
    return None


def is_equal(
    registry: Registry, subject: str, content: Content, parsed: ParsedSchema, version: Version
) -> bool:
    """Return whether a schema is the one of `version`, but for references and `confluent:version`."""
    old = version.content
    if content.schema_type != old.schema_type or not _equal_contracts(content, version):
        return False
    if content.text == old.text and content.references == old.references:
        return True
    if content.schema_type != SchemaType.AVRO:
        return False
    try:
        if content.references == old.references and not is_canonical(old):
            return registry.parse(subject, old).parsed.canonical == parsed.canonical
        if content.references or not old.references:
            return False
        return registry.parse(subject, old).parsed.formatted("resolved") == parsed.canonical
    except InvalidSchema:
        return False


def _equal_contracts(content: Content, version: Version) -> bool:
    old = version.content
    if content.rule_set != old.rule_set:
        return False
    ours, theirs = contracts.confluent_version(content.metadata), contracts.confluent_version(old.metadata)
    if (ours is None) == (theirs is None):
        return content.metadata == old.metadata
    if ours is not None and ours != version.number:
        return False
    return contracts.without_confluent_version(content.metadata) == contracts.without_confluent_version(
        old.metadata
    )
