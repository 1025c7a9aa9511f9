"""Avro data with the id of its schema, interchangeable with Confluent's serializers.

    serializer = AvroSerializer("http://localhost:8081", schema)
    Producer({...}, value_serializer=serializer)

Values are Python data as `fastavro` takes and returns it. Without a schema, text, bytes, booleans and numbers
are written with Avro's primitive types; other values need `use.latest.version` or `use.schema.id`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.records import Headers
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.codecs.avro import AvroCodec
from moldau.client.registry.rules.engine import Rules
from moldau.client.registry.rules.rule import READ, WRITE, Context
from moldau.client.registry.rules.walks import AvroWalk, MetadataTags
from moldau.client.registry.serdes.settings import SerdeSettings
from moldau.client.registry.serdes.target import Codecs, Subjects, about, client_of, schema_of
from moldau.client.registry.types import Schema

_PRIMITIVES: tuple[tuple[type, str], ...] = (
    (str, '"string"'),
    (bytes, '"bytes"'),
    (bool, '"boolean"'),
    (int, '"long"'),
    (float, '"double"'),
)


class AvroSerializer:
    """Writes the data of a topic's keys or values; `to_dict` converts objects of the application."""

    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        schema: Schema | str | dict[str, Any] | list[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        to_dict: Callable[[Any], Any] | None = None,
        rules: Rules | None = None,
    ) -> None:
        client = client_of(registry)
        settings = SerdeSettings.of(config, client, key=key)
        self._subjects = Subjects(client, settings, key=key)
        self._schema = schema_of(schema, "AVRO")
        self._codecs = Codecs(client, AvroCodec)
        self._strict = {
            "strict": settings.strict_avro,
            "strict_allow_default": settings.strict_avro_with_defaults,
        }
        self._to_dict = to_dict
        self._rules = rules or Rules()

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        value = data if self._to_dict is None else self._to_dict(data)
        schema = self._schema or _primitive(value)
        name = None if schema is None else self._codecs.of(schema).name
        subject = self._subjects.subject(topic, name)
        target = self._subjects.target(topic, subject, schema)
        codec = self._codecs.of(target.schema)
        with about(topic):
            if target.schema.rule_set is not None:
                context = Context(WRITE, target.schema, subject, topic, self._subjects.key, headers)
                value = self._rules.apply(context, value, _walk(codec, target.schema))
            return self._subjects.framed(target, codec.encode(value, **self._strict), headers)


class AvroDeserializer:
    """Reads data of any writer's schema, resolved to `schema`, to the latest version, or not at all."""

    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        schema: Schema | str | dict[str, Any] | list[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        from_dict: Callable[[Any], Any] | None = None,
        return_record_name: bool = False,
        rules: Rules | None = None,
    ) -> None:
        client = client_of(registry)
        self._subjects = Subjects(client, SerdeSettings.of(config, client, key=key), key=key)
        self._schema = schema_of(schema, "AVRO")
        self._codecs = Codecs(client, AvroCodec)
        self._from_dict = from_dict
        self._record_names = return_record_name
        self._rules = rules or Rules()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        with about(topic):
            _, written, payload = self._subjects.writer(data, headers, topic)
            writer = self._codecs.of(written)
            subject = self._subjects.subject_or_none(topic, writer.name)
            latest = None if subject is None else self._subjects.latest(subject)
            schema = latest.schema if latest is not None else self._schema or written
            self._rules.check_encoding(written, READ, topic)
            reader = writer if schema is written else self._codecs.of(schema)
            context = Context(READ, schema, subject or "", topic, self._subjects.key, headers)
            steps = self._subjects.migrations(subject or "", written, latest)
            value = writer.decode(payload, None if steps else reader, record_names=self._record_names)
            value = self._rules.migrate(steps, context, value)
            if schema.rule_set is not None:
                value = self._rules.apply(context, value, _walk(reader, schema))
        return value if self._from_dict is None else self._from_dict(value)


def _primitive(value: Any) -> Schema | None:
    text = next((text for kind, text in _PRIMITIVES if isinstance(value, kind)), None)
    return None if text is None else Schema(text)


def _walk(codec: AvroCodec, schema: Schema) -> AvroWalk:
    return AvroWalk(codec.schema, codec.named, MetadataTags(schema))
