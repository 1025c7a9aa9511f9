"""Confluent's AvroConverter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from moldau.client.registry.codecs.avro import AvroCodec
from moldau.client.registry.rules.walks import AvroWalk, MetadataTags
from moldau.client.registry.types import Schema as RegistrySchema
from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.converters.interface import Converter, RawHeaders
from moldau.pipelines.connect.converters.registry import settings as shared
from moldau.pipelines.connect.converters.registry.access import RegistryAccess, converting
from moldau.pipelines.connect.converters.registry.avro.options import Options
from moldau.pipelines.connect.converters.registry.avro.reading import LOGICAL_TYPE, connect_schema
from moldau.pipelines.connect.converters.registry.avro.values import Convert, reader, writer
from moldau.pipelines.connect.converters.registry.avro.writing import schema_text
from moldau.pipelines.connect.converters.registry.settings import boolean
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.schema import Schema
from moldau.schemas.schema import Reference

References = tuple[Reference, ...]

_METADATA: Final = "connect.meta.data"
_ENHANCED: Final = "enhanced.avro.schema.support"
_DISCARD: Final = "discard.type.doc.default"
_OPTIONAL_KEYS: Final = "allow.optional.map.keys"


class _Writing(NamedTuple):
    schema: RegistrySchema
    convert: Convert
    record_name: str | None


class _Reading(NamedTuple):
    schema: Schema | None
    convert: Convert


class AvroConverter(Converter):
    config: ClassVar[ConfigDef] = shared.registry_config(
        boolean(_ENHANCED, False, "Keep enums, and full names in unions."),
        boolean(shared.SCRUB, False, "Replace characters in names that Avro does not allow."),
        boolean(_METADATA, True, "Keep what Connect knows beyond Avro as properties of the schema."),
        boolean(_DISCARD, False, "Use docs and defaults of fields instead of those of types."),
        boolean(_OPTIONAL_KEYS, False, "Write maps with optional text keys as maps of Avro."),
        boolean(shared.FLATTEN_SINGLETONS, True, "Read a union of one type as that type."),
    )

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        settings = shared.parsed(self.config, config, is_key)
        size: int = settings[shared.CACHE_SIZE]
        self._access = RegistryAccess({**config, **shared.given(settings)}, is_key, _codec, size)
        self._options = Options(
            metadata=settings[_METADATA],
            enhanced=settings[_ENHANCED],
            scrub=settings[shared.SCRUB],
            discard_docs=settings[_DISCARD],
            optional_map_keys=settings[_OPTIONAL_KEYS],
            flatten_singletons=settings[shared.FLATTEN_SINGLETONS],
            ignore_defaults=settings[shared.IGNORE_DEFAULT],
        )
        self._writing: SchemaCache[Schema | None, _Writing] = SchemaCache(self._new_writing, size)
        self._reading: SchemaCache[tuple[str, References, int | None], _Reading] = SchemaCache(
            self._new_reading, size
        )

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if value is None:
            if schema is not None and not schema.optional:
                raise DataError("Found null value for non-optional schema")
            return None
        plan = self._writing(schema)
        data = plan.convert(value)
        with converting("serialize Avro", topic):
            target = self._access.target(topic, plan.record_name, plan.schema)
            codec = self._access.codecs.of(target.schema)
            data = self._access.apply_write_rules(
                topic, target, data, lambda: AvroWalk(codec.schema, codec.named, MetadataTags(target.schema))
            )
            return self._access.framed(target, codec.encode(data), headers)

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        with converting("deserialize Avro", topic):
            found = self._access.written(topic, headers, data, self._name)
            codec = self._access.codecs.of(found.reader)
            value = self._access.codecs.of(found.schema).decode(found.data, codec, named_types=True)
            value = self._access.apply_read_rules(
                topic,
                found.reader,
                value,
                lambda: AvroWalk(codec.schema, codec.named, MetadataTags(found.reader)),
            )
        plan = self._reading((found.reader.text, found.reader.references, found.version))
        return SchemaAndValue(plan.schema, plan.convert(value))

    def close(self) -> None:
        self._access.close()

    def _name(self, schema: RegistrySchema) -> str | None:
        return self._access.codecs.of(schema).name

    def _new_writing(self, schema: Schema | None) -> _Writing:
        text = schema_text(schema, self._options)
        with converting("describe Avro", "?"):
            name = _codec(text, {}).name
        return _Writing(RegistrySchema(text), writer(schema, self._options), name)

    def _new_reading(self, key: tuple[str, References, int | None]) -> _Reading:
        text, references, version = key
        codec = self._access.codecs.of(RegistrySchema(text, "AVRO", references))
        schema = connect_schema(codec.schema, codec.named, self._options, version)
        return _Reading(schema, reader(schema, self._options))


def _codec(text: str, references: Mapping[str, str]) -> AvroCodec:
    """Return a codec that leaves values of logical types as they are encoded."""
    return AvroCodec(_encoded(text), {name: _encoded(each) for name, each in references.items()})


def _encoded(text: str) -> str:
    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        if "logicalType" in node:
            node[LOGICAL_TYPE] = node.pop("logicalType")
        return node

    return json.dumps(json.loads(text, object_hook=renamed))
