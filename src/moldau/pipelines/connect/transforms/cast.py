"""Cast: change the type of fields, or of the whole key or value."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.numbers import float32, parse_double, parse_integer, to_integer
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Field, Schema, Type
from moldau.pipelines.connect.data.struct import Struct, inferred_type, java_class, with_default
from moldau.pipelines.connect.data.values.text import datetime_text, to_string
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import (
    described_like,
    field_value,
    require_map,
    require_struct,
    struct_like,
)

_PURPOSE = "cast types"
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_TARGETS = [*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING]
_SOURCES = [*_TARGETS, Type.BYTES]
_ENCODERS = {
    logical.DATE_NAME: logical.date_to_days,
    logical.TIME_NAME: logical.time_to_millis,
    logical.TIMESTAMP_NAME: logical.timestamp_to_millis,
}


def parse_spec(spec: list[str]) -> dict[str, Type] | Type:
    """Return the type of each field, or one type for the whole key or value."""
    casts: dict[str, Type] = {}
    whole = None
    for mapping in spec:
        parts = _split(mapping)
        if len(parts) > 2:
            raise ConfigError.invalid("renames", spec, f"Invalid rename mapping: {mapping}")
        target = _target(parts[-1].strip())
        if len(parts) == 1:
            whole = target
        else:
            casts[parts[0].strip()] = target
    if whole is not None and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to "
            "may only specify a single cast in their spec"
        )
    return casts if whole is None else whole


def _split(mapping: str) -> list[str]:
    """Split at colons like Java: empty parts at the end do not count."""
    parts = mapping.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _target(name: str) -> Type:
    target = Type.__members__.get(name.upper())
    if target is None:
        raise ConfigError(f"Invalid type found in casting spec: {name}")
    if target not in _TARGETS:
        raise ConfigError(
            f"Cast transformation does not support casting to {target};"
            f" supported types are [{', '.join(map(str, _TARGETS))}]"
        )
    return target


def _valid_spec(name: str, value: Any) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")
    parse_spec(value)


class Cast(Transformation):
    config: ClassVar[ConfigDef] = with_null_replacement(
        ConfigDef().define(
            "spec",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The new types as field:type,field:type, or one type for the whole key or value. "
            "Types: int8, int16, int32, int64, float32, float64, boolean, string; bytes become Base64 text.",
            validator=_valid_spec,
        )
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        spec = parse_spec(settings["spec"])
        self._whole = spec if isinstance(spec, Type) else None
        self._casts = spec if isinstance(spec, dict) else {}
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self._part.value_of(record), self._part.schema_of(record)
        if value is None:
            return record
        updated = None if schema is None else self._schemas(schema)
        if self._whole is not None:
            return self._part.replaced(record, updated, cast(schema, value, self._whole))
        if updated is None:
            return self._part.replaced(record, None, self._cast_map(require_map(value, _PURPOSE)))
        return self._part.replaced(
            record, updated, self._cast_struct(require_struct(value, _PURPOSE), updated)
        )

    def _cast_map(self, value: dict[str, Any]) -> dict[str, Any]:
        return value | {field: cast(None, value.get(field), target) for field, target in self._casts.items()}

    def _cast_struct(self, value: Struct, updated: Schema) -> Struct:
        return Struct.of(updated, (self._cast_field(value, field) for field in value.schema.fields))

    def _cast_field(self, value: Struct, field: Field) -> Any:
        one = field_value(value, field, self._with_default)
        target = self._casts.get(field.name)
        return one if target is None else cast(field.schema, one, target)

    def _updated(self, schema: Schema) -> Schema:
        if self._whole is not None:
            updated = described_like(schema, self._whole, schema.optional)
        else:
            fields = [(field.name, self._updated_field(field.name, field.schema)) for field in schema.fields]
            updated = struct_like(schema, fields, optional=schema.optional)
        if schema.default is None:
            return updated
        return with_default(updated, cast(schema, schema.default, updated.type))

    def _updated_field(self, name: str, schema: Schema) -> Schema:
        target = self._casts.get(name)
        if target is None:
            return schema
        updated = Schema(target, optional=schema.optional)
        return (
            updated if schema.default is None else with_default(updated, cast(schema, schema.default, target))
        )


def cast(schema: Schema | None, value: Any, target: Type) -> Any:
    """Return the value as one of the type; numbers wrap or saturate as in Java."""
    if value is None:
        return None
    source = inferred_type(value) if schema is None else schema.type
    if source is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(value)}"
            " which is not supported by Connect's data API"
        )
    if source not in _SOURCES:
        raise DataError(
            f"Cast transformation does not support casting from {source};"
            f" supported types are [{', '.join(map(str, _SOURCES))}]"
        )
    if target is Type.STRING:
        return _to_text(schema, value)
    if schema is not None and schema.name in _ENCODERS:
        value = _ENCODERS[schema.name](schema, value)
    try:
        return _to_number(value, target)
    except ValueError:
        raise DataError(f"Value ({value}) was out of range for requested data type") from None


def _to_text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, datetime):
        return datetime_text(value)
    return b64encode(value).decode() if isinstance(value, bytes) else to_string(schema, value)


def _to_number(value: Any, target: Type) -> Any:
    if not isinstance(value, (bool, int, float, Decimal, str)):
        raise DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")
    if target in _BITS:
        return (
            parse_integer(value, _BITS[target])
            if isinstance(value, str)
            else to_integer(value, _BITS[target])
        )
    if target is Type.BOOLEAN:
        return value.lower() == "true" if isinstance(value, str) else to_integer(value, 64) != 0
    number = parse_double(value) if isinstance(value, str) else float(value)
    return float32(number) if target is Type.FLOAT32 else number
