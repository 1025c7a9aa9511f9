"""Confluent's JsonSchemaConverter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final, NamedTuple

from moldau.client.registry.codecs.json_schema import JsonSchemaCodec
from moldau.client.registry.rules.walks import JsonWalk, MetadataTags
from moldau.client.registry.types import Schema as RegistrySchema
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.converters.interface import Converter, RawHeaders
from moldau.pipelines.connect.converters.registry import settings as shared
from moldau.pipelines.connect.converters.registry.access import RegistryAccess, converting
from moldau.pipelines.connect.converters.registry.json_schema.options import Options, has_decimals
from moldau.pipelines.connect.converters.registry.json_schema.reading import connect_schema
from moldau.pipelines.connect.converters.registry.json_schema.values import (
    Convert,
    checked_writer,
    dumped,
    reader,
)
from moldau.pipelines.connect.converters.registry.json_schema.writing import schema_text
from moldau.pipelines.connect.converters.registry.settings import boolean
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.schema import Schema
from moldau.schemas.schema import Reference

_ADDITIONAL: Final = "object.additional.properties"
_OPTIONAL: Final = "use.optional.for.nonrequired"
_DECIMALS: Final = "decimal.format"
_VALIDATE: Final = "json.fail.invalid.schema"

References = tuple[Reference, ...]


class _Writing(NamedTuple):
    schema: RegistrySchema
    convert: Convert


class _Reading(NamedTuple):
    schema: Schema
    convert: Convert
    exact: bool


class JsonSchemaConverter(Converter):
    config: ClassVar[ConfigDef] = shared.registry_config(
        boolean(_VALIDATE, False, "Check values by the schema."),
        boolean(_ADDITIONAL, True, "Allow properties that the schema of an object does not have."),
        boolean(_OPTIONAL, False, "Read properties that are not required as optional fields."),
        (_DECIMALS, ConfigType.STRING, "BASE64", Importance.MEDIUM, "Decimals are BASE64 bytes or NUMERIC."),
        boolean(shared.FLATTEN_SINGLETONS, True, "Read a oneOf of one type as that type."),
    )

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        settings = shared.parsed(self.config, config, is_key)
        size: int = settings[shared.CACHE_SIZE]
        self._access = RegistryAccess({**config, **shared.given(settings)}, is_key, JsonSchemaCodec, size)
        self._validates: bool = settings[_VALIDATE]
        self._options = Options(
            additional_properties=settings[_ADDITIONAL],
            optional_if_not_required=settings[_OPTIONAL],
            numeric_decimals=settings[_DECIMALS].upper() == "NUMERIC",
            flatten_singletons=settings[shared.FLATTEN_SINGLETONS],
            ignore_defaults=settings[shared.IGNORE_DEFAULT],
        )
        self._writing: SchemaCache[Schema, _Writing] = SchemaCache(self._new_writing, size)
        self._reading: SchemaCache[tuple[str, References, int | None], _Reading] = SchemaCache(
            self._new_reading, size
        )

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if value is None and (schema is None or schema.optional):
            return None
        if schema is None:
            raise DataError("JsonSchemaConverter needs values with a schema.")
        plan = self._writing(schema)
        data = plan.convert(value)
        with converting("serialize JSON Schema", topic):
            target = self._access.target(topic, schema.name, plan.schema)
            codec = self._access.codecs.of(target.schema)
            data = self._access.apply_write_rules(
                topic, target, data, lambda: JsonWalk(codec.schema, MetadataTags(target.schema))
            )
            if self._validates:
                codec.check(data)
            return self._access.framed(target, dumped(data).encode(), headers)

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        with converting("deserialize JSON Schema", topic):
            found = self._access.written(topic, headers, data, self._name)
            codec = self._access.codecs.of(found.reader)
            plan = self._reading((found.reader.text, found.reader.references, found.version))
            value = _parsed(found.data, plan.exact)
            if self._validates:
                codec.check(value)
            value = self._access.apply_read_rules(
                topic, found.reader, value, lambda: JsonWalk(codec.schema, MetadataTags(found.reader))
            )
        return SchemaAndValue(plan.schema, plan.convert(value))

    def close(self) -> None:
        self._access.close()

    def _name(self, schema: RegistrySchema) -> str | None:
        return self._access.codecs.of(schema).name

    def _new_writing(self, schema: Schema) -> _Writing:
        text = schema_text(schema, self._options)
        return _Writing(RegistrySchema(text, "JSON"), checked_writer(schema, self._options))

    def _new_reading(self, key: tuple[str, References, int | None]) -> _Reading:
        text, references, version = key
        codec = self._access.codecs.of(RegistrySchema(text, "JSON", references))
        schema = connect_schema(codec.schema, codec.registry, self._options, version)
        return _Reading(schema, reader(schema), has_decimals(schema))


def _parsed(data: bytes, exact: bool) -> Any:
    try:
        return json.loads(data, parse_float=Decimal) if exact else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The data is not JSON: {error}") from error
