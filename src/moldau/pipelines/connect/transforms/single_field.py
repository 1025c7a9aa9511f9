"""ExtractField and HoistField: take one field out of a record, or put the record into one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import UnknownFieldError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.field_paths import SYNTAX_VERSION, FieldPath, with_syntax_version
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import require_map, require_struct

_EXTRACTION = "field extraction"


class ExtractField(Transformation):
    """Replace the key or value by one of its fields. Null remains null."""

    config: ClassVar[ConfigDef] = with_syntax_version(
        with_null_replacement(
            ConfigDef().define(
                "field", ConfigType.STRING, NO_DEFAULT, Importance.MEDIUM, "The field to extract."
            )
        )
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._name: str = settings["field"]
        self._path = FieldPath(self._name, settings[SYNTAX_VERSION])
        self._with_default: bool = settings["replace.null.with.default"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if schema is None:
            extracted = None if value is None else self._path.value_in_map(require_map(value, _EXTRACTION))
            return self._part.replaced(record, None, extracted)
        found = None if value is None else require_struct(value, _EXTRACTION)
        field = self._path.field_of(schema)
        if field is None:
            raise UnknownFieldError(f"Unknown field: {self._name}")
        extracted = None if found is None else self._path.value_in_struct(found, self._with_default)
        return self._part.replaced(record, field.schema, extracted)


class HoistField(Transformation):
    """Wrap the key or value in a struct, or without schema in a map, with one field."""

    config: ClassVar[ConfigDef] = ConfigDef().define(
        "field", ConfigType.STRING, NO_DEFAULT, Importance.MEDIUM, "The name of the only field of the result."
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        name: str = self.config.parse(config)["field"]
        self._name = name
        self._schemas: SchemaCache[Schema, Schema] = SchemaCache(
            lambda schema: struct({name: schema}), SCHEMAS_PER_TRANSFORMATION
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if schema is None:
            return self._part.replaced(record, None, {self._name: value})
        updated = self._schemas(schema)
        return self._part.replaced(record, updated, Struct.of(updated, [value]))
