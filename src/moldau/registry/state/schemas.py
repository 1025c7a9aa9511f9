"""Schemas of all subjects: by id, by GUID, and lists with filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from moldau.registry.authorization import Access, Operation, denied
from moldau.registry.state import errors, replies
from moldau.registry.state.associations.queries import Wanted, of_subject
from moldau.registry.state.contracts import Json, has_rule_type
from moldau.registry.state.lookup import formatted
from moldau.registry.state.names import DEFAULT_CONTEXT, Name, context_of, parse_name, relative_to
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.store import Version, VersionKey
from moldau.registry.state.subjects import decorated, page

#: In the order in which Confluent lists them.
TYPES: Final = ["JSON", "PROTOBUF", "AVRO"]


class Filter(NamedTuple):
    """Which schemas `GET /schemas` lists."""

    prefix: str = ""
    aliases: bool = False
    deleted: bool = False
    latest_only: bool = False
    rule_type: str = ""
    resource_type: str | None = None
    association_types: Sequence[str] = ()
    lifecycles: Sequence[str] = ()

    @property
    def by_association(self) -> bool:
        return bool(self.association_types or self.resource_type or self.lifecycles)


def list_schemas(registry: Registry, wanted: Filter, offset: int, limit: int, *, access: Access) -> Decision:
    aliases = _aliases(registry, wanted.prefix, access) if wanted.aliases else {}
    names: Iterable[str] = registry.store.subjects_with_prefix(wanted.prefix)
    if aliases:
        names = sorted({*names, *(name for name in aliases if name in registry.store.subjects)})
    readable = (name for name in names if access.may_read(name))
    found = ((name, version) for name in readable for version in _versions(registry, name, wanted))
    limits = registry.settings.search_limit
    if not wanted.by_association:
        # Replies are made of those of the page only; there may be very many others.
        chosen = page(found, offset, limit, limits)
        return Decision((), [_reply(*each, aliases.get(each[0], ())) for each in chosen])
    shown = (_associated(registry, *each, aliases.get(each[0], ()), wanted) for each in found)
    return Decision((), page((each for each in shown if each is not None), offset, limit, limits))


def _versions(registry: Registry, name: str, wanted: Filter) -> list[Version]:
    versions = [
        each for each in registry.store.subjects[name].versions.values() if wanted.deleted or not each.deleted
    ]
    if wanted.latest_only:
        versions = versions[-1:]
    if wanted.rule_type:
        versions = [each for each in versions if has_rule_type(each.content.rule_set, wanted.rule_type)]
    return versions


def _reply(name: str, version: Version, aliases: Sequence[str]) -> Json:
    reply = replies.of_version(name, version)
    return {**reply, "aliases": sorted(aliases)} if aliases else reply


def _associated(
    registry: Registry, name: str, version: Version, aliases: Sequence[str], wanted: Filter
) -> Json | None:
    """Return a version with its associations; None if it has none that are wanted."""
    reply = _reply(name, version, aliases)
    found = of_subject(registry, name, Wanted(wanted.resource_type, wanted.association_types))
    if not found:
        return reply if "NONE" in wanted.lifecycles else None
    if wanted.lifecycles:
        found = [each for each in found if each["lifecycle"] in wanted.lifecycles]
    return {**reply, "associations": found} if found else None


def _aliases(registry: Registry, prefix: str, access: Access) -> dict[str, list[str]]:
    """Return the aliases of each subject, by the configs below `prefix`."""
    wildcard, bare = prefix.startswith(":*:"), prefix.removeprefix(":*:")
    aliases: dict[str, list[str]] = {}
    for name, config in registry.store.configs.items():
        if name is None or not config.get("alias") or not access.may_read(name):
            continue
        if (parse_name(name).subject if wildcard else name).startswith(bare):
            aliases.setdefault(relative_to(name, config["alias"]), []).append(name)
    return aliases


def get_by_id(
    registry: Registry,
    schema_id: int,
    subject: str | None,
    *,
    access: Access,
    format: str = "",
    reference_format: str = "",
    tags: Sequence[str] = (),
    max_id: bool = False,
) -> Decision:
    key, version = _find(registry, schema_id, subject, access)
    highest = registry.store.id_space(context_of(key)).highest_id if max_id else None
    reply = replies.of_id(key, version, formatted(registry, key, version.content, format), highest)
    return Decision((), decorated(registry, key, version, reply, tags, reference_format))


def get_text_by_id(
    registry: Registry, schema_id: int, subject: str | None, *, access: Access, format: str
) -> Decision:
    name, version = _find(registry, schema_id, subject, access)
    text = formatted(registry, name, version.content, format)
    return Decision((), version.content.text if text is None else text)


def _find(registry: Registry, schema_id: int, subject: str | None, access: Access) -> tuple[str, Version]:
    key = _use_of_id(registry, schema_id, subject, access)
    version = None if key is None else registry.store.version(*key)
    if key is None or version is None:
        raise errors.schema_not_found(schema_id)
    return key[0], version


def _use_of_id(registry: Registry, schema_id: int, subject: str | None, access: Access) -> VersionKey | None:
    """Return a version with this id; error 403 if only subjects have it that are denied."""
    is_denied = False
    for key in registry.store.uses_of_id(schema_id, subject):
        if not access.is_denied(key[0]):
            return key
        is_denied = True
    if is_denied:
        raise denied(Operation.GLOBAL_READ)
    return None


def _readable_uses(
    registry: Registry, schema_id: int, subject: str | None, access: Access, deleted: bool
) -> list[VersionKey]:
    key = _use_of_id(registry, schema_id, subject, access)
    if key is None:
        raise errors.schema_not_found()
    uses = registry.store.versions_of_id(context_of(key[0]), schema_id, deleted=deleted)
    return [use for use in uses if access.may_read(use[0])]


def subjects_of_id(
    registry: Registry,
    schema_id: int,
    subject: str | None,
    offset: int,
    limit: int,
    *,
    access: Access,
    deleted: bool,
) -> Decision:
    names = [name for name, _ in _readable_uses(registry, schema_id, subject, access, deleted)]
    return Decision((), page(names, offset, limit, registry.settings.subject_search_limit))


def versions_of_id(
    registry: Registry,
    schema_id: int,
    subject: str | None,
    offset: int,
    limit: int,
    *,
    access: Access,
    deleted: bool,
) -> Decision:
    uses = _readable_uses(registry, schema_id, subject, access, deleted)
    found = [{"subject": name, "version": number} for name, number in uses]
    return Decision((), page(found, offset, limit, registry.settings.search_limit))


def get_by_guid(registry: Registry, guid: str, *, access: Access, format: str) -> Decision:
    for context, schema_id in _ids(registry, guid, access):
        name, version = _find(registry, schema_id, Name(context, "").prefix, access)
        return Decision((), replies.of_id(None, version, formatted(registry, name, version.content, format)))
    raise errors.schema_not_found(guid)


def ids_of_guid(registry: Registry, guid: str, *, access: Access) -> Decision:
    return Decision(
        (), [{"context": context, "id": schema_id} for context, schema_id in _ids(registry, guid, access)]
    )


def _ids(registry: Registry, guid: str, access: Access) -> list[tuple[str, int]]:
    """Return the ids of a schema by context, without those that only denied subjects have."""
    try:
        digest = UUID(guid).bytes
    except ValueError:
        return []
    found = (
        (context, registry.store.id_of(context, digest))
        for context in (DEFAULT_CONTEXT, *registry.store.contexts)
    )
    ids = [(context, schema_id) for context, schema_id in found if schema_id is not None]
    readable = [each for each in ids if _is_readable(registry, *each, access)]
    if ids and not readable:
        raise denied(Operation.GLOBAL_READ)
    return readable


def _is_readable(registry: Registry, context: str, schema_id: int, access: Access) -> bool:
    uses = registry.store.uses_of_id(schema_id, Name(context, "").prefix)
    return any(not access.is_denied(name) for name, _ in uses)


def list_types() -> Decision:
    return Decision((), TYPES)
