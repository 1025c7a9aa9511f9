"""SetSchemaMetadata: set the name and version of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import field_value


class SetSchemaMetadata(Transformation):
    config: ClassVar[ConfigDef] = with_null_replacement(
        ConfigDef()
        .define("schema.name", ConfigType.STRING, None, Importance.HIGH, "The schema's new name.")
        .define("schema.version", ConfigType.INT, None, Importance.HIGH, "The schema's new version.")
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        changes = {"name": settings["schema.name"], "version": settings["schema.version"]}
        self._changes = {name: value for name, value in changes.items() if value is not None}
        if not self._changes:
            raise ConfigError("Neither schema name nor version configured")
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def _updated(self, schema: Schema) -> Schema:
        """As in Kafka, only the schema of a struct can be changed: the others have no fields."""
        fields = [(field.name, field.schema) for field in schema.fields]
        return schema.replace(fields=fields, **self._changes)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        updated = self._schemas(schema)
        if isinstance(value, Struct):
            fields = value.schema.fields
            value = Struct.of(updated, [field_value(value, field, self._with_default) for field in fields])
        return self._part.replaced(record, updated, value)
