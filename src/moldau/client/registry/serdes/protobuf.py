"""Protobuf messages with the id of their schema, interchangeable with Confluent's serializers.

The serializer takes messages of any generated class. It registers the class's file under the subject, and
the files that it imports under subjects of their own, which become references. The deserializer returns
messages of a given class, or of a class made from the writer's schema.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from moldau.client.records import Headers
from moldau.client.registry.cache import BoundedCache
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.codecs.protobuf import (
    ProtobufCodec,
    encoded,
    indexes_of,
    is_known,
    parsed,
    serialized_text,
)
from moldau.client.registry.rules.engine import Rules, Step
from moldau.client.registry.rules.rule import READ, WRITE, Context
from moldau.client.registry.rules.walks import MetadataTags, ProtobufWalk
from moldau.client.registry.serdes.settings import SerdeSettings
from moldau.client.registry.serdes.target import Codecs, Subjects, about, client_of
from moldau.client.registry.types import Schema
from moldau.client.serdes import SerializationError
from moldau.schemas.schema import Reference

_MAX_TYPES = 1000


class ProtobufSerializer:
    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        message_class: type[Message] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        rules: Rules | None = None,
    ) -> None:
        self._registry = client_of(registry)
        self._settings = SerdeSettings.of(config, self._registry, key=key)
        self._subjects = Subjects(self._registry, self._settings, key=key)
        self._class = message_class
        self._rules = rules or Rules()
        #: Message type → its schema and path.
        self._known = BoundedCache(_MAX_TYPES, time.monotonic)
        self._codecs = Codecs(self._registry, ProtobufCodec)

    def serialize(self, topic: str, data: Message | None, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, self._class or Message):
            expected = self._class.__name__ if self._class else "Protobuf message"
            raise SerializationError(f"{topic}: {type(data).__name__} is not a {expected}")
        descriptor = data.DESCRIPTOR
        subject = self._subjects.subject(topic, descriptor.full_name)
        schema, indexes = self._schema_of(descriptor)
        target = self._subjects.target(topic, subject, schema)
        with about(topic):
            if self._subjects.latest(subject) is not None:
                indexes = self._codecs.of(target.schema).indexes_by_name(descriptor.full_name)
            if target.schema.rule_set is not None:
                context = Context(WRITE, target.schema, subject, topic, self._subjects.key, headers)
                data = self._rules.apply(context, data, ProtobufWalk(MetadataTags(target.schema)))
            return self._subjects.framed(target, encoded(data), headers, indexes)

    def _schema_of(self, descriptor: Any) -> tuple[Schema, tuple[int, ...]]:
        known: tuple[Schema, tuple[int, ...]] | None = self._known.get(descriptor.full_name)
        if known is None:
            schema = Schema(serialized_text(descriptor.file), "PROTOBUF", self._references(descriptor.file))
            known = (schema, indexes_of(descriptor))
            self._known.put(descriptor.full_name, known)
        return known

    def _references(self, file: Any) -> tuple[Reference, ...]:
        """Register the imported files, the ones that they import first, and return them as references."""
        found = []
        for imported in file.dependencies:
            if self._settings.skip_known_types and is_known(imported.name):
                continue
            schema = Schema(serialized_text(imported), "PROTOBUF", self._references(imported))
            subject = self._settings.reference_subject_name(imported.name)
            if self._settings.register_references:
                self._registry.register(subject, schema, self._settings.normalize)
            version = self._registry.lookup(subject, schema, self._settings.normalize).version
            found.append(Reference(imported.name, subject, version or -1))
        return tuple(found)


class ProtobufDeserializer:
    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        message_class: type[Message] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        rules: Rules | None = None,
    ) -> None:
        client = client_of(registry)
        self._subjects = Subjects(client, SerdeSettings.of(config, client, key=key), key=key)
        self._codecs = Codecs(client, ProtobufCodec)
        self._class = message_class
        self._rules = rules or Rules()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        with about(topic):
            name, written, payload = self._subjects.writer(data, headers, topic, with_indexes=True)
            self._rules.check_encoding(written, READ, topic)
            if self._class is not None:
                message = parsed(self._class, payload)
            else:
                message = self._codecs.of(written).decode(payload, name.indexes)
            subject = self._subjects.subject_or_none(topic, message.DESCRIPTOR.full_name)
            latest = None if subject is None else self._subjects.latest(subject)
            schema = written if latest is None else latest.schema
            context = Context(READ, schema, subject or "", topic, self._subjects.key, headers)
            if steps := self._subjects.migrations(subject or "", written, latest):
                message = self._migrated(
                    steps, context, self._codecs.of(written).decode(payload, name.indexes)
                )
            if schema.rule_set is None:
                return message
            return self._rules.apply(context, message, ProtobufWalk(MetadataTags(schema)))

    def _migrated(self, steps: list[Step], context: Context, message: Message) -> Message:
        """Migrate the JSON form of a message, and return a message of the class, or of the chosen schema."""
        data = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
        data = self._rules.migrate(steps, context, data)
        kind = self._class
        if kind is None:
            codec = self._codecs.of(context.schema)
            kind = codec.message_class(codec.indexes_by_name(message.DESCRIPTOR.full_name))
        try:
            return json_format.ParseDict(data, kind(), ignore_unknown_fields=True)
        except json_format.ParseError as error:
            raise SerializationError(f"the migrated data does not fit the message: {error}") from error
