"""InsertHeader, DropHeaders and HeaderFrom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    ValidList,
    ValidString,
)
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import ConfigError, UnknownFieldError
from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.data.values.parser import parse_string
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import (
    field_value,
    non_empty_list,
    require_map,
    require_struct,
    struct_like,
)


def _not_null(name: str, value: Any) -> None:
    if value is None:
        raise ConfigError.invalid(name, "null", "entry must be non null")


class InsertHeader(Transformation):
    """Add a header with the same value to every record."""

    config: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            "header",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "The name of the header.",
            validator=_not_null,
        )
        .define(
            "value.literal",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "The value of the header; numbers, booleans, dates, lists and maps are recognised.",
            validator=_not_null,
        )
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._name: str = settings["header"]
        self._literal = parse_string(settings["value.literal"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        headers = record.headers.duplicate()
        return record.replace(headers=headers.append(self._name, self._literal.schema, self._literal.value))


class DropHeaders(Transformation):
    """Remove headers by name."""

    config: ClassVar[ConfigDef] = ConfigDef().define(
        "headers",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "The names of the headers to remove.",
        validator=ValidList(empty_allowed=False),
    )

    def configure(self, config: Mapping[str, Any]) -> None:
        self._names: list[str] = self.config.parse(config)["headers"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.replace(headers=record.headers.duplicate().remove(*self._names))


def _header_from() -> ConfigDef:
    definition = (
        ConfigDef()
        .define(
            "fields",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The fields whose values become headers.",
            validator=non_empty_list,
        )
        .define(
            "headers",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The names of the headers, in the order of the fields.",
            validator=non_empty_list,
        )
        .define(
            "operation",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "move: the fields leave the key or value; copy: they remain there, too.",
            validator=ValidString(("move", "copy")),
        )
    )
    return with_null_replacement(definition)


class HeaderFrom(Transformation):
    """Copy or move fields to headers."""

    config: ClassVar[ConfigDef] = _header_from()

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        fields, headers = settings["fields"], settings["headers"]
        if len(fields) != len(headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._headers: list[tuple[str, str]] = list(zip(fields, headers, strict=True))
        self._moved = frozenset(fields) if settings["operation"] == "move" else frozenset()
        self._purpose = f"header {settings['operation']}"
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._remaining, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        headers = record.headers.duplicate()
        if schema is None:
            remaining = self._from_map(require_map(value, self._purpose), headers)
            return self._part.replaced(record, None, remaining).replace(headers=headers)
        struct = require_struct(value, self._purpose)
        updated, changed = self._without_moved(schema, struct)
        self._from_struct(schema, struct, headers)
        return self._part.replaced(record, updated, changed).replace(headers=headers)

    def _from_map(self, value: dict[str, Any], headers: Headers) -> dict[str, Any]:
        for field, header in self._headers:
            headers.append(header, None, value.get(field))
        return {key: one for key, one in value.items() if key not in self._moved}

    def _without_moved(self, schema: Schema, struct: Struct) -> tuple[Schema, Struct]:
        if not self._moved:
            return schema, struct
        updated = self._schemas(schema)
        values = (
            field_value(struct, struct.field(field.name), self._with_default) for field in updated.fields
        )
        return updated, Struct.of(updated, values)

    def _from_struct(self, schema: Schema, struct: Struct, headers: Headers) -> None:
        for name, header in self._headers:
            field = schema.field(name)
            if field is None:
                raise UnknownFieldError(f"Unknown field: {name}")
            headers.add(header, field_value(struct, struct.field(name), self._with_default), field.schema)

    def _remaining(self, schema: Schema) -> Schema:
        fields = [(field.name, field.schema) for field in schema.fields if field.name not in self._moved]
        return struct_like(schema, fields)
