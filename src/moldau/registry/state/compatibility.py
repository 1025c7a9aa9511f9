"""Compatibility of a schema with the versions of its subject.

Levels without TRANSITIVE look at the latest version only; `compatibilityGroup` limits the versions to those
with the same value of a metadata property.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from moldau.http.errors import ApiError
from moldau.registry.state import contracts, errors
from moldau.registry.state.canonical import canonicalize
from moldau.registry.state.contracts import Json
from moldau.registry.state.fields import has_top_level_field
from moldau.registry.state.names import context_of
from moldau.registry.state.records import Content
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest
from moldau.registry.state.store import Subject, Version
from moldau.schemas.schema import InvalidSchema, ParsedSchema

_DIFFERENT_TYPE: Final = "Incompatible because of different schema type"
#: The memory of a result without its findings: the key, its parts, and the place in the cache.
_ENTRY_BYTES: Final = 500
#: An old schema is shown in messages up to this length.
_MAX_TEXT: Final = 10 * 1024


def check(
    registry: Registry, request: SchemaRequest, version: int | None, *, normalize: bool, verbose: bool
) -> Decision:
    """Check a schema against one version (-1: the latest), or against all."""
    subject = request.subject
    if version is None:
        found = registry.store.subjects.get(subject)
        previous = [] if found is None else compared_versions(registry.config(subject), found)
    else:
        one = registry.store.version(subject, version)
        if (one is None or one.deleted) and version != -1:
            raise errors.version_not_found(version)
        previous = [] if one is None else [one]
    config = registry.config(subject)
    try:
        if request.is_empty:
            raise errors.invalid_schema("Empty schema")
        new = config.get("validateNewSchemas", registry.settings.validate_new_schemas)
        content, parsed = canonicalize(registry, request, config, new=new, normalize=normalize)
    except ApiError as error:
        if not verbose or error.error_code != errors.INVALID_SCHEMA:
            raise
        return Decision((), {"is_compatible": False, "messages": [error.message]})
    findings = incompatibilities(registry, subject, config, content, parsed, previous)
    reply: Json = {"is_compatible": not findings}
    if verbose:
        reply["messages"] = findings
    return Decision((), reply)


def compared_versions(config: Json, subject: Subject) -> list[Version]:
    """Return the live versions that a check looks at, ascending: only the latest, if one is enough."""
    latest = subject.latest()
    if latest is None:
        return []
    if config["compatibilityLevel"].endswith("_TRANSITIVE") or config.get("compatibilityGroup") is not None:
        return [each for each in subject.versions.values() if not each.deleted]
    return [latest]


def incompatibilities(
    registry: Registry,
    subject: str,
    config: Json,
    content: Content,
    parsed: ParsedSchema,
    previous: Sequence[Version],
) -> list[str]:
    """Return why a schema must not follow the live versions `previous`, which ascend."""
    validate_fields = config.get("validateFields", registry.settings.validate_fields)
    findings = list(_reserved_fields(content, parsed, previous)) if validate_fields else []
    level = config["compatibilityLevel"]
    lenient = (config.get("compatibilityPolicy") or "STRICT") == "LENIENT"
    for version in reversed(_same_group(config, content, previous)):
        if level == "NONE":
            break
        found = _compared(registry, subject, level, lenient, content, parsed, version)
        if found or not level.endswith("_TRANSITIVE"):
            findings += found
            break
    if findings:
        shown = "true" if validate_fields else "false"
        findings.append(f"{{validateFields: '{shown}', compatibility: '{level}'}}")
    return findings


def _compared(
    registry: Registry,
    subject: str,
    level: str,
    lenient: bool,
    content: Content,
    parsed: ParsedSchema,
    version: Version,
) -> tuple[str, ...]:
    """Compare with one version, unless that was done; error 42201 if the schemas are too complex for it."""
    old = version.content
    if content.references or old.references:
        # What references stand for can change: deleted versions can be registered again.
        return _findings(registry, subject, level, lenient, parsed, version)
    # The text of a request would be kept for its result only; that of the version is stored anyway.
    text = blake2b(content.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    kind, new = level.removesuffix("_TRANSITIVE"), (content.schema_type, text)
    key = (context_of(subject), kind, lenient, new, old[:2], version.number)
    found = registry.compared.get(key)
    if found is None:
        found = _findings(registry, subject, level, lenient, parsed, version)
        registry.compared.put(key, found, _ENTRY_BYTES + sum(map(len, found)))
    return found


def _findings(
    registry: Registry, subject: str, level: str, lenient: bool, parsed: ParsedSchema, version: Version
) -> tuple[str, ...]:
    try:
        return tuple(_compare(registry, subject, level, lenient, parsed, version))
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None


def _compare(
    registry: Registry, subject: str, level: str, lenient: bool, parsed: ParsedSchema, version: Version
) -> list[str]:
    old = registry.parse(subject, version.content).parsed
    if old.schema_type != parsed.schema_type:
        return [_DIFFERENT_TYPE]
    forward: list[str] = []
    backward: list[str] = []
    if not level.startswith("BACKWARD"):
        forward = [
            _worded(each.message, "old", "new") for each in old.incompatibilities(parsed, lenient=lenient)
        ]
    if not level.startswith("FORWARD"):
        backward = [
            _worded(each.message, "new", "old") for each in parsed.incompatibilities(old, lenient=lenient)
        ]
    # Confluent's FULL levels show the old schema only if it cannot be read with the new one.
    if backward or (forward and level.startswith("FORWARD")):
        shown = backward if backward else forward
        shown.append(f"{{oldSchemaVersion: {version.number}}}")
        text = old.canonical
        if len(text) <= _MAX_TEXT:
            shown.append(f"{{oldSchema: '{text}'}}")
        else:
            shown.append(f"{{oldSchema: <truncated> '{text[:_MAX_TEXT]}...'}}")
    return forward + backward


def _worded(message: str, reader: str, writer: str) -> str:
    """Return a finding with its two schemas named: the reader's first.

    A message without places for the names is that of the check BACKWARD.
    """
    if "%s" in message:
        return message.replace("%s", reader, 1).replace("%s", writer, 1)
    if reader == "new":
        return message
    parts = message.split("new schema")
    return "old schema".join(part.replace("old schema", "new schema") for part in parts)


def _same_group(config: Json, content: Content, previous: Sequence[Version]) -> Sequence[Version]:
    group = config.get("compatibilityGroup")
    if group is None:
        return previous
    value = contracts.property_of(content.metadata, group)
    return [each for each in previous if contracts.property_of(each.content.metadata, group) == value]


def _reserved_fields(content: Content, parsed: ParsedSchema, previous: Sequence[Version]) -> Iterator[str]:
    """Yield conflicts with the fields that the metadata reserve."""
    reserved = _reserved(content)
    if previous:
        for field in _reserved(previous[-1].content):
            if field not in reserved:
                yield (
                    f"The new schema has reserved field {field} removed from its metadata which is present "
                    "in the old schema's metadata."
                )
    for field in reserved:
        if has_top_level_field(parsed, field):
            yield f"The new schema has field that conflicts with the reserved field {field}."


def _reserved(content: Content) -> list[str]:
    text = contracts.property_of(content.metadata, contracts.RESERVED_FIELDS) or ""
    return list(dict.fromkeys(field.strip() for field in text.split(",") if field.strip()))
