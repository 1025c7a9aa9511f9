"""Subjects and their versions: listing, reading, deleting."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from moldau.registry.authorization import Access
from moldau.registry.state import errors, records, replies
from moldau.registry.state.associations.queries import of_subject
from moldau.registry.state.contracts import Json
from moldau.registry.state.fields import tags_of
from moldau.registry.state.lookup import formatted
from moldau.registry.state.names import parse_name, relative_to
from moldau.registry.state.records import KeyValue
from moldau.registry.state.registering import require_writable
from moldau.registry.state.registry import Decision, Limit, Registry
from moldau.registry.state.store import Version
from moldau.schemas.schema import InvalidSchema

LATEST: Final = -1
_MAX_VERSION: Final = (1 << 31) - 1
#: Unlike `int`, without the digits of other alphabets, underscores and spaces.
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,100}")
_MAX_OFFSET: Final = (1 << 31) - 1
T = TypeVar("T")


def parse_version(text: str) -> int:
    """Return the number of a version; -1 for the latest."""
    if text == "latest":
        return LATEST
    if NUMBER.fullmatch(text) is None:
        raise errors.invalid_version(text)
    number = int(text)
    if number != LATEST and not 1 <= number <= _MAX_VERSION:
        raise errors.invalid_version(text)
    return number


def page(items: Iterable[T], offset: int, limit: int, limits: Limit) -> list[T]:
    """Return a page of a list."""
    start = min(max(offset, 0), _MAX_OFFSET)
    return list(itertools.islice(items, start, start + limits.of(limit)))


def list_subjects(
    registry: Registry,
    prefix: str,
    offset: int,
    limit: int,
    *,
    deleted: bool,
    deleted_only: bool,
    access: Access,
) -> Decision:
    subjects = registry.store.subjects
    names = (
        name
        for name in registry.store.subjects_with_prefix(prefix)
        if (not subjects[name].live if deleted_only else deleted or subjects[name].live)
        and access.may_read(name)
    )
    return Decision((), page(names, offset, limit, registry.settings.subject_search_limit))


def list_versions(
    registry: Registry,
    subject: str,
    offset: int,
    limit: int,
    *,
    deleted: bool,
    deleted_only: bool,
    deleted_as_negative: bool,
) -> Decision:
    if not registry.store.has_subjects(subject, deleted=deleted or deleted_only):
        raise errors.subject_not_found(subject)
    found = registry.store.subjects.get(subject)
    versions: Iterable[Version] = () if found is None else found.versions.values()
    if deleted_as_negative:
        numbers = [-each.number if each.deleted else each.number for each in versions]
    elif deleted_only:
        numbers = [each.number for each in versions if each.deleted]
    else:
        numbers = [each.number for each in versions if deleted or not each.deleted]
    return Decision((), page(numbers, offset, limit, registry.settings.search_limit))


def find_version(registry: Registry, subject: str, number: int, *, deleted: bool) -> tuple[str, Version]:
    """Return a version; a bare subject is searched in all contexts. Errors 40401, 40402."""
    name = parse_name(subject)
    names = [subject]
    if not name.prefix:
        names += [name._replace(context=context).qualified for context in registry.store.contexts]
    for each in names:
        version = registry.store.version(each, number)
        if version is not None and (deleted or not version.deleted):
            return each, version
    if not registry.store.has_subjects(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(number)


def get_version(
    registry: Registry,
    subject: str,
    number: int,
    *,
    format: str = "",
    reference_format: str = "",
    deleted: bool = False,
    tags: Sequence[str] = (),
) -> Decision:
    name, version = find_version(registry, subject, number, deleted=deleted)
    reply = replies.of_version(name, version, formatted(registry, name, version.content, format))
    return Decision((), decorated(registry, name, version, reply, tags, reference_format))


def decorated(
    registry: Registry, name: str, version: Version, reply: Json, tags: Sequence[str], reference_format: str
) -> Json:
    """Return a reply with tags and qualified references, if requested."""
    if reference_format == "qualified" and version.content.references and parse_name(name).prefix:
        reply["references"] = [
            each._replace(subject=relative_to(name, each.subject))._asdict()
            for each in version.content.references
        ]
    if tags:
        try:
            found = tags_of(registry.parse(name, version.content).parsed, tags)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None
        if found:
            reply = _before_time(reply, "schemaTags", found)
    return reply


def _before_time(reply: Mapping[str, object], key: str, value: object) -> Json:
    ordered: Json = {}
    for each, old in reply.items():
        if each in ("maxId", "ts") and key not in ordered:
            ordered[key] = value
        ordered[each] = old
    ordered.setdefault(key, value)
    return ordered


def get_text(registry: Registry, subject: str, number: int, *, format: str, deleted: bool) -> Decision:
    """The schema alone."""
    name, version = find_version(registry, subject, number, deleted=deleted)
    text = formatted(registry, name, version.content, format)
    return Decision((), version.content.text if text is None else text)


def referenced_by(
    registry: Registry, subject: str, number: int, offset: int, limit: int, *, deleted: bool
) -> Decision:
    name, version = find_version(registry, subject, number, deleted=True)
    ids = [schema_id for _, schema_id in registry.store.referencing(name, version.number, deleted=deleted)]
    return Decision((), page(ids, offset, limit, registry.settings.search_limit))


def latest_with_metadata(
    registry: Registry, subject: str, wanted: Mapping[str, str], *, format: str, deleted: bool
) -> Decision:
    """The latest version with these metadata properties."""
    found = registry.store.subjects.get(subject)
    for version in reversed(found.versions.values()) if found is not None else ():
        properties = (version.content.metadata or {}).get("properties")
        if properties is None or (version.deleted and not deleted):
            continue
        if wanted.items() <= properties.items():
            return Decision(
                (),
                replies.of_version(subject, version, formatted(registry, subject, version.content, format)),
            )
    if not registry.store.has_subjects(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


def delete_version(registry: Registry, subject: str, number: int, *, permanent: bool) -> Decision:
    """Delete one version: first softly, then permanently."""
    store = registry.store
    version = store.version(subject, number)
    if version is None:
        if not store.has_subjects(subject, deleted=True):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(number)
    if version.deleted and not permanent:
        raise errors.version_soft_deleted(subject, version.number)
    require_writable(registry, subject)
    found = store.subjects[subject]
    if not permanent and found.live == 1 and of_subject(registry, subject):
        raise errors.no_active_version(subject)
    if store.referencing(subject, version.number, deleted=permanent):
        raise errors.reference_exists(subject, version.number)
    if not permanent:
        record = records.schema_record(subject, version.number, version.schema_id, version.content, True)
        return Decision((record,), version.number)
    if not version.deleted:
        raise errors.version_not_soft_deleted(subject, version.number)
    written = [records.schema_tombstone(subject, version.number)]
    if len(found.versions) == 1:
        written += _settings_tombstones(registry, subject)
    return Decision(tuple(written), version.number)


def delete_subject(
    registry: Registry, subject: str, *, permanent: bool, associated: bool = False
) -> Decision:
    """Delete all versions; permanently only if they are soft-deleted.

    `associated`: the associations of the subject are deleted, too.
    """
    store = registry.store
    if not store.has_subjects(subject, deleted=True):
        raise errors.subject_not_found(subject)
    if not permanent and not store.has_subjects(subject, deleted=False):
        raise errors.subject_soft_deleted(subject)
    require_writable(registry, subject)
    if not associated and of_subject(registry, subject):
        raise errors.subject_associated(subject)
    found = store.subjects.get(subject)
    versions = [] if found is None else [v for v in found.versions.values() if permanent or not v.deleted]
    for version in versions:
        if _referring_subjects(registry, subject, version.number, permanent) - {subject}:
            raise errors.reference_exists(subject, version.number)
        if permanent and not version.deleted:
            raise errors.subject_not_soft_deleted(subject)
    numbers = [version.number for version in versions]
    if not permanent:
        last = numbers[-1] if numbers else 0
        return Decision((records.delete_subject_record(subject, last),), numbers)
    return Decision(tuple(removal_of(registry, subject, numbers)), numbers)


def removal_of(registry: Registry, subject: str, numbers: Iterable[int]) -> list[KeyValue]:
    """Return the tombstones of a subject: of its versions, the last one first, and of its settings."""
    written = [records.schema_tombstone(subject, number) for number in sorted(numbers, reverse=True)]
    return written + _settings_tombstones(registry, subject)


def _referring_subjects(registry: Registry, subject: str, number: int, deleted: bool) -> set[str]:
    return {
        user
        for key in registry.store.referencing(subject, number, deleted=deleted)
        for user, _ in registry.store.versions_of_id(*key, deleted=deleted)
    }


def _settings_tombstones(registry: Registry, subject: str) -> list[KeyValue]:
    """Return the tombstones of the settings of a subject that is removed."""
    written = []
    if subject in registry.store.modes:
        written.append(records.setting_tombstone(records.MODE, subject))
    if subject in registry.store.configs:
        written.append(records.setting_tombstone(records.CONFIG, subject))
    return written
