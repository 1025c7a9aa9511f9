"""JSON data with the id of its JSON Schema, interchangeable with Confluent's serializers.

Values are validated by the schema in both directions unless `json.fail.invalid.schema=false`. `to_dict` and
`from_dict` convert objects of the application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.records import Headers
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.codecs.json_schema import JsonSchemaCodec
from moldau.client.registry.rules.engine import Rules
from moldau.client.registry.rules.rule import READ, WRITE, Context
from moldau.client.registry.rules.walks import JsonWalk, MetadataTags
from moldau.client.registry.serdes.settings import SerdeSettings
from moldau.client.registry.serdes.target import Codecs, Subjects, about, client_of, schema_of
from moldau.client.registry.types import Schema


class JsonSchemaSerializer:
    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        schema: Schema | str | dict[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        to_dict: Callable[[Any], Any] | None = None,
        rules: Rules | None = None,
    ) -> None:
        client = client_of(registry)
        self._settings = SerdeSettings.of(config, client, key=key)
        self._subjects = Subjects(client, self._settings, key=key)
        self._schema = schema_of(schema, "JSON")
        self._codecs = Codecs(client, JsonSchemaCodec)
        self._to_dict = to_dict
        self._rules = rules or Rules()

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        value = data if self._to_dict is None else self._to_dict(data)
        name = None if self._schema is None else self._codecs.of(self._schema).name
        subject = self._subjects.subject(topic, name)
        target = self._subjects.target(topic, subject, self._schema)
        codec = self._codecs.of(target.schema)
        with about(topic):
            if target.schema.rule_set is not None:
                context = Context(WRITE, target.schema, subject, topic, self._subjects.key, headers)
                value = self._rules.apply(context, value, JsonWalk(codec.schema, MetadataTags(target.schema)))
            encoded = codec.encode(value, validate=self._settings.validate_json)
            return self._subjects.framed(target, encoded, headers)


class JsonSchemaDeserializer:
    """Reads JSON that any registered schema describes; validated by `schema`, the latest, or the writer's."""

    def __init__(
        self,
        registry: RegistryClient | str | Mapping[str, Any],
        schema: Schema | str | dict[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        key: bool = False,
        from_dict: Callable[[Any], Any] | None = None,
        rules: Rules | None = None,
    ) -> None:
        client = client_of(registry)
        self._settings = SerdeSettings.of(config, client, key=key)
        self._subjects = Subjects(client, self._settings, key=key)
        self._schema = schema_of(schema, "JSON")
        self._codecs = Codecs(client, JsonSchemaCodec)
        self._from_dict = from_dict
        self._rules = rules or Rules()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        with about(topic):
            _, written, payload = self._subjects.writer(data, headers, topic)
            subject = self._subjects.subject_or_none(topic, self._codecs.of(written).name)
            latest = None if subject is None else self._subjects.latest(subject)
            schema = latest.schema if latest is not None else self._schema or written
            self._rules.check_encoding(written, READ, topic)
            codec = self._codecs.of(schema)
            context = Context(READ, schema, subject or "", topic, self._subjects.key, headers)
            steps = self._subjects.migrations(subject or "", written, latest)
            value = self._rules.migrate(steps, context, codec.decode(payload, validate=False))
            if self._settings.validate_json:
                codec.check(value)
            if schema.rule_set is not None:
                value = self._rules.apply(context, value, JsonWalk(codec.schema, MetadataTags(schema)))
        return value if self._from_dict is None else self._from_dict(value)
