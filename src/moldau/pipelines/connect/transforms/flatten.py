"""Flatten: nested fields become fields of the record, named by their path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, inferred_type, java_class, with_default
from moldau.pipelines.connect.transforms.interface import SCHEMAS_PER_TRANSFORMATION, Part, Transformation
from moldau.pipelines.connect.transforms.requirements import require_map, require_struct, struct_like

_PURPOSE = "flattening"


class Flatten(Transformation):
    config: ClassVar[ConfigDef] = ConfigDef().define(
        "delimiter", ConfigType.STRING, ".", Importance.MEDIUM, "The text between the names of a path."
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        self._delimiter: str = self.config.parse(config)["delimiter"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten_map(require_map(value, _PURPOSE), "", flat)
            return self._part.replaced(record, None, flat)
        found = require_struct(value, _PURPOSE)
        updated = Struct(self._schemas(schema))
        self._flatten_struct(found, "", updated)
        return self._part.replaced(record, updated.schema, updated)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flatten_map(self, value: dict[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for key, entry in value.items():
            name = self._name(prefix, key)
            kind = None if entry is None else inferred_type(entry)
            if kind is Type.MAP:
                self._flatten_map(entry, name, flat)
            elif kind is Type.STRUCT:
                raise DataError(
                    f"Flatten transformation does not support class {java_class(entry)}"
                    f" for record without schemas (for field {name})."
                )
            elif kind is None and entry is not None:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(entry)}"
                    " which is not supported by Connect's data API"
                )
            else:
                flat[name] = entry

    def _updated(self, schema: Schema) -> Schema:
        fields: list[tuple[str, Schema]] = []
        self._flatten_schema(schema, "", fields, schema.optional, schema.default)
        return struct_like(schema, fields)

    def _flatten_schema(
        self,
        schema: Schema,
        prefix: str,
        fields: list[tuple[str, Schema]],
        optional: bool,
        parent_default: Struct | None,
    ) -> None:
        for field in schema.fields:
            name = self._name(prefix, field.name)
            is_optional = optional or field.schema.optional
            default = field.schema.default
            if default is None and parent_default is not None:
                default = parent_default.value_of(field)
            if field.schema.type is Type.STRUCT:
                self._flatten_schema(field.schema, name, fields, is_optional, default)
            elif field.schema.type is Type.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                plain = field.schema.replace(optional=is_optional, default=None)
                fields.append((name, plain if default is None else with_default(plain, default)))

    def _flatten_struct(self, value: Struct, prefix: str, updated: Struct) -> None:
        for field, one in zip(value.schema.fields, value.values, strict=True):
            name = self._name(prefix, field.name)
            if field.schema.type is not Type.STRUCT:
                updated.put(name, value.value_of(field))
            elif one is not None:
                self._flatten_struct(one, name, updated)
