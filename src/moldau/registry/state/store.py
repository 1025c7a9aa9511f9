"""Everything the topic says: schemas by id, versions of subjects, settings, contexts, associations.

The store changes only in `replay`, and only by records; reading changes nothing, because threads read, too.
Schemas are not parsed here: loading a topic costs a JSON document and a hash per record. An id belongs to one
content per context; a record that gives an id to another content is ignored, as Confluent's registry does.

The next id is the highest ever seen in the context plus one, also after permanent deletes.
"""

from __future__ import annotations

import itertools
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from uuid import UUID

from moldau.base.json_log import event
from moldau.registry.state import records
from moldau.registry.state.contracts import confluent_version
from moldau.registry.state.names import ALL_CONTEXTS, context_of, covers, parse_name, relative_to
from moldau.registry.state.records import Content, DamagedRecord, Json
from moldau.schemas.guid import guid as guid_of
from moldau.schemas.schema import SchemaType

logger = logging.getLogger(__name__)

#: The field with which Java's library begins every object.
_FIRST_FIELD: Final = '"type":'


class Version:
    """One version of a subject."""

    __slots__ = ("content", "deleted", "number", "schema_id", "timestamp")

    def __init__(self, number: int, schema_id: int, content: Content, deleted: bool, timestamp: int) -> None:
        self.number = number
        self.schema_id = schema_id
        self.content = content
        self.deleted = deleted
        self.timestamp = timestamp


class Subject:
    """The versions of a subject, ascending; soft-deleted ones included."""

    __slots__ = ("live", "special", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, Version] = {}
        self.live = 0
        #: Versions that a schema with another GUID may be equal to: they have references, a version of
        #: their own in the metadata, or a text that is not canonical.
        self.special = 0

    def latest(self) -> Version | None:
        """Return the highest live version."""
        if not self.live:
            return None
        return next((each for each in reversed(self.versions.values()) if not each.deleted), None)

    def highest(self) -> int:
        return next(reversed(self.versions), 0)

    def put(self, version: Version) -> Version | None:
        previous = self.versions.get(version.number)
        ascending = previous is not None or version.number > self.highest()
        self.versions[version.number] = version
        if not ascending:
            self.versions = dict(sorted(self.versions.items()))
        self._count(version, 1)
        if previous is not None:
            self._count(previous, -1)
        return previous

    def remove(self, number: int) -> Version | None:
        version = self.versions.pop(number, None)
        if version is not None:
            self._count(version, -1)
        return version

    def delete_up_to(self, number: int) -> None:
        for version in self.versions.values():
            if version.number <= number and not version.deleted:
                version.deleted = True
                self.live -= 1

    def _count(self, version: Version, by: int) -> None:
        self.live += 0 if version.deleted else by
        content = version.content
        special = content.references or confluent_version(content.metadata) is not None
        self.special += by if special or not is_canonical(content) else 0


class Context:
    """The ids of a context, and their uses."""

    __slots__ = ("by_guid", "contents", "highest_id", "uses")

    def __init__(self) -> None:
        self.highest_id = 0
        self.contents: dict[int, Content] = {}
        #: The last version of each subject that uses an id.
        self.uses: dict[int, dict[str, int]] = {}
        self.by_guid: dict[bytes, int] = {}


#: Identifies a version: subject and number.
VersionKey = tuple[str, int]
#: Identifies a schema: context and id.
SchemaKey = tuple[str, int]


class Store:
    def __init__(self) -> None:
        self.subjects: dict[str, Subject] = {}
        #: How often a subject was added or removed.
        self._renamings = 0
        #: The names of the subjects in order, once they were needed, and the number of changes before that.
        self._names: tuple[int, list[str]] = (0, [])
        self.id_spaces: dict[str, Context] = {}
        #: Contexts with a CONTEXT record, in the order of their names.
        self.contexts: dict[str, None] = {}
        #: None is the top level.
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, str] = {}
        #: Which schemas refer to a version.
        self.referenced_by: dict[VersionKey, set[SchemaKey]] = {}
        self.associations: dict[bytes, Json] = {}
        #: Changes with every record, so that cached responses can be checked.
        self.generation = 0
        self._replays: dict[str, Callable[[bytes, Json, Json | None, int], None]] = {
            records.SCHEMA: self._replay_schema,
            records.CONFIG: self._replay_config,
            records.MODE: self._replay_mode,
            records.NOOP: self._ignore,
            records.DELETE_SUBJECT: self._replay_delete_subject,
            records.CLEAR_SUBJECT: self._replay_clear_subject,
            records.CONTEXT: self._replay_context,
            records.ASSOCIATION: self._replay_association,
        }

    def replay(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record; `DamagedRecord` if it cannot be one of a registry."""
        decoded = records.decode(key)
        apply = self._replays.get(decoded.get("keytype", ""))
        if apply is None:
            logger.warning(
                "The record with the key %s is of an unknown type; it is ignored.",
                key[:200],
                extra=event("registry.record_skipped"),
            )
            return
        self.generation += 1
        try:
            # Karapace writes an empty value where Confluent's writes none.
            apply(key, decoded, records.decode(value) if value else None, timestamp)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedRecord(f"The record with the key {key[:200]!r} is incomplete: {error!r}") from None

    def confirm(self, key: bytes, timestamp: int) -> None:
        """Set the time of a record that was replayed before it was written."""
        association = self.associations.get(key)
        if association is not None:
            is_new = association["createTs"] == association["updateTs"]
            created = timestamp if is_new else association["createTs"]
            self.associations[key] = {**association, "createTs": created, "updateTs": timestamp}
            self.generation += 1
        if not key.startswith(b'{"keytype":"SCHEMA"'):
            return
        decoded = records.decode(key)
        version = self.version(decoded["subject"], decoded["version"])
        if version is not None:
            version.timestamp = timestamp
            self.generation += 1

    # Questions

    def version(self, subject: str, number: int) -> Version | None:
        """Return a version, also a deleted one; -1 is the latest live one."""
        found = self.subjects.get(subject)
        if found is None:
            return None
        return found.latest() if number == -1 else found.versions.get(number)

    def has_subjects(self, scope: str | None, *, deleted: bool) -> bool:
        """Return whether the subject exists, or any subject of the context that `scope` names."""
        if scope is not None and parse_name(scope).subject:
            found = self.subjects.get(scope)
            return found is not None and (deleted or found.live > 0)
        return any(
            covers(scope, name) and (deleted or subject.live > 0) for name, subject in self.subjects.items()
        )

    def subjects_with_prefix(self, prefix: str) -> Iterator[str]:
        """Yield subjects in order; `:*:` selects all contexts, `:*:p` the prefix in each."""
        names = self._sorted_names()
        if prefix == ALL_CONTEXTS:
            yield from names
        elif prefix.startswith(ALL_CONTEXTS):
            bare = prefix.removeprefix(ALL_CONTEXTS)
            yield from (name for name in names if parse_name(name).subject.startswith(bare))
        else:
            context = context_of(prefix)
            for name in itertools.islice(names, bisect_left(names, prefix), None):
                if not name.startswith(prefix):
                    return
                if context_of(name) == context:
                    yield name

    def _sorted_names(self) -> list[str]:
        """Return the names in order. A thread may ask while subjects are added: its list is then not used."""
        changes, names = self._names
        if changes != self._renamings:
            changes = self._renamings
            names = sorted(self.subjects)
            self._names = (changes, names)
        return names

    def id_space(self, context: str) -> Context:
        """Return the ids of a context; an empty one that is not stored if the context has none."""
        return self.id_spaces.get(context) or Context()

    def id_of(self, context: str, digest: bytes) -> int | None:
        """Return the id of a content that is in use."""
        space = self.id_spaces.get(context)
        if space is None:
            return None
        schema_id = space.by_guid.get(digest)
        return schema_id if schema_id in space.uses else None

    def use_of(self, context: str, schema_id: int, subject: str) -> VersionKey | None:
        """Return the version of a subject that has this id."""
        space = self.id_spaces.get(context)
        number = None if space is None else space.uses.get(schema_id, {}).get(subject)
        return None if number is None else (subject, number)

    def uses_of_id(self, schema_id: int, subject: str | None) -> Iterator[VersionKey]:
        """Yield the versions with this id that a request for it may show, the best one first.

        They are those of `subject`, or of all subjects of the context that it names. A subject of the default
        context that does not have the id is searched in all contexts.
        """
        name = parse_name(subject or "")
        if name.subject:
            found = self.use_of(name.context, schema_id, name.qualified)
            if found is not None:
                yield found
            if found is not None or name.prefix:
                return
            for context in self.contexts:
                found = self.use_of(context, schema_id, name._replace(context=context).qualified)
                if found is not None:
                    yield found
        space = self.id_spaces.get(name.context)
        if space is not None:
            yield from space.uses.get(schema_id, {}).items()

    def versions_of_id(self, context: str, schema_id: int, *, deleted: bool) -> list[VersionKey]:
        space = self.id_spaces.get(context)
        uses = space.uses.get(schema_id, {}) if space is not None else {}
        found = ((subject, number, self.version(subject, number)) for subject, number in uses.items())
        return [
            (subject, number)
            for subject, number, version in found
            if version is not None and (deleted or not version.deleted)
        ]

    def referencing(self, subject: str, number: int, *, deleted: bool) -> list[SchemaKey]:
        """Return the schemas that refer to a version and are in use themselves."""
        return sorted(
            key
            for key in self.referenced_by.get((subject, number), ())
            if deleted or self.versions_of_id(*key, deleted=False)
        )

    # Replay

    def _ignore(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        """A NOOP record changes nothing."""

    def _replay_schema(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        name, number = decoded["subject"], int(decoded["version"])
        if value is None:
            self._remove(name, number)
            return
        content = records.content_of(value)
        schema_id, context = int(value["id"]), context_of(name)
        space = self.id_spaces.get(context)
        if space is None:
            space = self.id_spaces[context] = Context()
        existing = space.contents.get(schema_id)
        if existing is not None and space.uses.get(schema_id):
            if existing.text != content.text:
                logger.error(
                    "Two schemas have the id %d in the context %s; the later one is ignored.",
                    schema_id,
                    context,
                    extra=event("registry.record_skipped", id=schema_id),
                )
                return
            if existing == content:
                content = existing
        space.highest_id = max(space.highest_id, schema_id)
        space.contents[schema_id] = content
        space.uses.setdefault(schema_id, {})[name] = number
        space.by_guid[
            UUID(guid_of(content.text, content.references, content.metadata, content.rule_set)).bytes
        ] = schema_id
        subject = self.subjects.get(name)
        if subject is None:
            subject = self.subjects[name] = Subject()
            self._renamings += 1
        replaced = subject.put(Version(number, schema_id, content, bool(value.get("deleted")), timestamp))
        if replaced is not None and replaced.schema_id != schema_id:
            self._release(context, replaced.schema_id, name, number, subject)
        for target in reference_targets(name, content):
            self.referenced_by.setdefault(target, set()).add((context, schema_id))

    def _remove(self, name: str, number: int) -> None:
        subject = self.subjects.get(name)
        version = subject.remove(number) if subject is not None else None
        if subject is None or version is None:
            return
        if not subject.versions:
            del self.subjects[name]
            self._renamings += 1
        context = context_of(name)
        self._release(context, version.schema_id, name, number)

    def _release(
        self, context: str, schema_id: int, name: str, number: int, subject: Subject | None = None
    ) -> None:
        """Forget a use of an id; the id of a schema that is not used any more is not looked up again.

        `subject`: its versions may include others with this id.
        """
        space = self.id_space(context)
        uses = space.uses.get(schema_id)
        if uses is None:
            return
        if uses.get(name) == number:
            del uses[name]
            versions = () if subject is None else subject.versions.values()
            others = [each.number for each in versions if each.schema_id == schema_id]
            if others:
                uses[name] = others[-1]
        content = space.contents[schema_id]
        for target in reference_targets(name, content):
            referencing = self.referenced_by.get(target)
            if referencing is not None and not uses:
                referencing.discard((context, schema_id))
                if not referencing:
                    del self.referenced_by[target]
        if not uses:
            del space.uses[schema_id], space.contents[schema_id]

    def _replay_config(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        if value is None:
            self.configs.pop(decoded.get("subject"), None)
        else:
            value.pop("subject", None)
            self.configs[decoded.get("subject")] = value

    def _replay_mode(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        if value is None:
            self.modes.pop(decoded.get("subject"), None)
        else:
            self.modes[decoded.get("subject")] = value["mode"]

    def _replay_delete_subject(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        subject = self.subjects.get(value["subject"]) if value is not None else None
        if subject is not None and value is not None:
            subject.delete_up_to(int(value["version"]))

    def _replay_clear_subject(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        """Remove the soft-deleted versions in the scope, before schemas are imported."""
        if value is None:
            return
        scope = value.get("subject")
        for name in [name for name in self.subjects if covers(scope, name)]:
            for version in [each for each in self.subjects[name].versions.values() if each.deleted]:
                self._remove(name, version.number)

    def _replay_context(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        if value is None:
            self.contexts.pop(decoded["context"], None)
        elif decoded["context"] not in self.contexts:
            self.contexts = dict.fromkeys(sorted([*self.contexts, decoded["context"]]))

    def _replay_association(self, key: bytes, decoded: Json, value: Json | None, timestamp: int) -> None:
        if value is None:
            self.associations.pop(key, None)
            return
        previous = self.associations.get(key)
        created = previous["createTs"] if previous is not None else timestamp
        self.associations[key] = {**value, "createTs": created, "updateTs": timestamp}


def reference_targets(subject: str, content: Content) -> Iterable[VersionKey]:
    """Return the versions that a schema of `subject` refers to."""
    return ((relative_to(subject, each.subject), each.version) for each in content.references)


def is_canonical(content: Content) -> bool:
    """Return False for Avro texts that Karapace wrote: it sorts the fields of objects."""
    if content.schema_type != SchemaType.AVRO:
        return True
    first = content.text.find("{")
    return first < 0 or content.text.startswith(_FIRST_FIELD, first + 1)
