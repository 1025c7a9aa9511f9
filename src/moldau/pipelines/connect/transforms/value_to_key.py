"""ValueToKey: make a key of fields of the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    ValidList,
)
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import (
    field_value,
    require_map,
    require_struct,
)

_PURPOSE = "copying fields from value to key"


class ValueToKey(Transformation):
    config: ClassVar[ConfigDef] = with_null_replacement(
        ConfigDef().define(
            "fields",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The fields of the value that make the key.",
            validator=ValidList(empty_allowed=False),
        )
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._fields: list[str] = settings["fields"]
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._key_schema, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.value_schema is None:
            value = require_map(record.value, _PURPOSE)
            key = {field: value.get(field) for field in self._fields}
            return record.replace(key_schema=None, key=key)
        found = require_struct(record.value, _PURPOSE)
        schema = self._schemas(found.schema)
        values = (field_value(found, found.field(field), self._with_default) for field in self._fields)
        return record.replace(key_schema=schema, key=Struct.of(schema, values), value_schema=found.schema)

    def _key_schema(self, schema: Schema) -> Schema:
        fields = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            fields.append((name, field.schema))
        return struct(fields)
