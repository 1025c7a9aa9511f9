"""The registered schema a record is written with, and the one it is read into."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from moldau.client.records import Headers
from moldau.client.registry.cache import BoundedCache
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.rules.engine import RuleError, Step
from moldau.client.registry.rules.migrations import migrations
from moldau.client.registry.serdes.framing import SchemaName, frame, guid_header, header_name, of_record
from moldau.client.registry.serdes.settings import SerdeSettings
from moldau.client.registry.types import RegisteredSchema, Schema
from moldau.client.serdes import SerializationError
from moldau.schemas.schema import parse

_MAX_SUBJECTS = 1000


class Subjects:
    """The subjects of a serializer or deserializer, and what the registry has under them."""

    def __init__(self, registry: RegistryClient, settings: SerdeSettings, *, key: bool) -> None:
        self.registry = registry
        self.settings = settings
        self.key = key
        self._known = BoundedCache(_MAX_SUBJECTS, time.monotonic)

    def subject(self, topic: str, record_name: str | None) -> str:
        subject = self.settings.subject_name(topic, self.key, record_name)
        if subject is None:
            raise SerializationError(
                f"{topic}: the subject name strategy needs a named record, but the schema has no name"
            )
        return subject

    def subject_or_none(self, topic: str, record_name: str | None) -> str | None:
        return self.settings.subject_name(topic, self.key, record_name)

    def latest(self, subject: str) -> RegisteredSchema | None:
        """Return the version that the configuration chooses, or None if it chooses none."""
        settings = self.settings
        if settings.use_schema_guid is not None:
            return self._by_guid(subject, settings.use_schema_guid)
        if settings.use_schema_id is not None:
            schema = self.registry.schema_by_id(settings.use_schema_id, subject)
            return RegisteredSchema(schema, settings.use_schema_id, subject)
        if settings.use_latest_with_metadata is not None:
            return self.registry.latest_with_metadata(subject, settings.use_latest_with_metadata)
        return self.registry.latest(subject) if settings.use_latest_version else None

    def target(self, topic: str, subject: str, schema: Schema | None) -> RegisteredSchema:
        """Return the version to write with; `schema` is the one of the data, if it is known."""
        chosen = self.latest(subject)
        if chosen is not None:
            if schema is not None and self.settings.compatibility_strict:
                self._check(topic, subject, chosen, schema)
            return self._with_guid(chosen)
        if schema is None:
            raise SerializationError(
                f"{topic}: no schema; give one, or set use.latest.version=true or use.schema.id"
            )
        known: RegisteredSchema | None = self._known.get((subject, schema.text))
        if known is not None:
            return known
        normalize = self.settings.normalize
        if self.settings.auto_register:
            found = self.registry.register(subject, schema, normalize, self.settings.propagate_tags)
        else:
            found = self.registry.lookup(subject, schema, normalize)
        found = self._with_guid(found)
        self._known.put((subject, schema.text), found)
        return found

    def migrations(self, subject: str, written: Schema, chosen: RegisteredSchema | None) -> list[Step]:
        """Return the rules that convert data of the writer's version to the chosen one."""
        if chosen is None or chosen.schema.text == written.text:
            return []
        key = ("migrations", subject, written.key, chosen.id)
        known: list[Step] | None = self._known.get(key)
        if known is None:
            known = migrations(self.registry, subject, written, chosen)
            self._known.put(key, known)
        return known

    def _by_guid(self, subject: str, guid: str) -> RegisteredSchema:
        """Return the schema of a GUID, with its id in the context of the subject."""
        known: RegisteredSchema | None = self._known.get(("guid", subject))
        if known is None:
            context = subject[1:].partition(":")[0] if subject.startswith(":.") else "."
            ids = {one.context: one.id for one in self.registry.ids_of_guid(guid)}
            if context not in ids:
                raise SerializationError(f"use.schema.guid={guid}: the registry has no such schema")
            schema = self.registry.schema_by_guid(guid)
            known = RegisteredSchema(schema, ids[context], subject, guid=guid)
            self._known.put(("guid", subject), known)
        return known

    def _with_guid(self, found: RegisteredSchema) -> RegisteredSchema:
        """Add the GUID, which older registries do not answer, if it is written to headers."""
        if found.guid is not None or not self.settings.id_in_header:
            return found
        looked_up = self.registry.lookup(found.subject, found.schema, deleted=True)
        if looked_up.guid is None:
            raise SerializationError("schema.id.serializer=HEADER needs a registry with GUIDs (8.0 or newer)")
        return looked_up

    def _check(self, topic: str, subject: str, chosen: RegisteredSchema, schema: Schema) -> None:
        key = ("compatible", subject, chosen.id, schema.text)
        if self._known.get(key) is not None:
            return
        latest = parse(
            chosen.schema.schema_type, chosen.schema.text, self.registry.referenced_texts(chosen.schema)
        )
        own = parse(schema.schema_type, schema.text, self.registry.referenced_texts(schema))
        found = latest.incompatibilities(own)
        if found:
            raise SerializationError(
                f"{topic}: the latest version of {subject} cannot read data of the given schema: "
                f"{found[0].message}. Set latest.compatibility.strict=false to skip this check"
            )
        self._known.put(key, True)

    def framed(
        self, target: RegisteredSchema, data: bytes, headers: Headers, indexes: tuple[int, ...] | None = None
    ) -> bytes:
        """Return the data with the id of its schema in front, or add the header that names it."""
        if not self.settings.id_in_header:
            return frame(target.id, indexes) + data
        if not isinstance(headers, list):
            raise SerializationError("schema.id.serializer=HEADER needs the headers of the record as a list")
        headers.append((header_name(self.key), guid_header(target.guid or "", indexes)))
        return data

    def writer(
        self, data: bytes, headers: Headers, topic: str, *, with_indexes: bool = False
    ) -> tuple[SchemaName, Schema, bytes]:
        """Return how a record names its schema, the schema, and the data without the frame."""
        name, payload = of_record(
            data, headers, key=self.key, with_indexes=with_indexes, use_headers=self.settings.read_headers
        )
        if name.id is not None:
            return name, self.registry.schema_by_id(name.id, self.subject_or_none(topic, None)), payload
        return name, self.registry.schema_by_guid(name.guid or ""), payload


Codec = TypeVar("Codec")


class Codecs(Generic[Codec]):
    """The codecs of schemas, made once; `make` takes the text and the texts of the references."""

    def __init__(self, registry: RegistryClient, make: Callable[[str, Mapping[str, str]], Codec]) -> None:
        self._registry = registry
        self._make = make
        self._known = BoundedCache(_MAX_SUBJECTS, time.monotonic)

    def of(self, schema: Schema) -> Codec:
        key = (schema.text, schema.references)
        known: Codec | None = self._known.get(key)
        if known is None:
            known = self._make(schema.text, self._registry.referenced_texts(schema))
            self._known.put(key, known)
        return known


def client_of(registry: RegistryClient | str | Mapping[str, Any]) -> RegistryClient:
    return registry if isinstance(registry, RegistryClient) else RegistryClient(registry)


def schema_of(schema: Schema | str | Mapping[str, Any] | list[Any] | None, kind: str) -> Schema | None:
    """Return a schema given as an object, a text, or the data of its JSON text."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, str):
        return Schema(json.dumps(schema), kind)
    if kind == "AVRO" and not schema.lstrip().startswith(("{", "[", '"')):
        return Schema(json.dumps(schema.strip()), kind)
    return Schema(schema, kind)


@contextmanager
def about(topic: str) -> Iterator[None]:
    """Add the topic to errors of the data."""
    try:
        yield
    except RuleError:
        raise
    except SerializationError as error:
        text = error.message or ""
        if text.startswith(f"{topic}:"):
            raise
        raise SerializationError(f"{topic}: {text}") from error
