"""TimestampConverter: timestamps as text, Unix time, Date, Time or Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    ValidString,
)
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.date_format import DateFormat
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, DataError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import INT64, STRING, Field, Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class, with_default
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import (
    field_value,
    require_map,
    require_struct,
    struct_like,
)

_PURPOSE = "converting timestamp formats"
_SCHEMAS = {
    "string": STRING,
    "unix": INT64,
    "Date": logical.DATE,
    "Time": logical.TIME,
    "Timestamp": logical.TIMESTAMP,
}
#: Units per millisecond, or (negative) milliseconds per unit.
_PRECISIONS = {"seconds": -1000, "milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}
_KINDS = {logical.TIMESTAMP_NAME: "Timestamp", logical.DATE_NAME: "Date", logical.TIME_NAME: "Time"}


def _definition() -> ConfigDef:
    definition = (
        ConfigDef()
        .define(
            "field",
            ConfigType.STRING,
            "",
            Importance.HIGH,
            "The field with the timestamp; empty if the whole key or value is one.",
        )
        .define(
            "target.type",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "The form to convert to: string, unix, Date, Time or Timestamp.",
            validator=ValidString(tuple(_SCHEMAS)),
        )
        .define(
            "format",
            ConfigType.STRING,
            "",
            Importance.MEDIUM,
            "The form of texts that are read or written, a pattern of Java's SimpleDateFormat.",
        )
        .define(
            "unix.precision",
            ConfigType.STRING,
            "milliseconds",
            Importance.LOW,
            "The unit of Unix time: seconds, milliseconds, microseconds or nanoseconds. "
            "Parts of a millisecond are lost.",
            validator=ValidString(("nanoseconds", "microseconds", "milliseconds", "seconds")),
        )
    )
    return with_null_replacement(definition)


class TimestampConverter(Transformation):
    config: ClassVar[ConfigDef] = _definition()

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._field: str = settings["field"]
        self._target: str = settings["target.type"]
        self._units: int = _PRECISIONS[settings["unix.precision"]]
        self._format = _date_format(settings["format"], self._target)
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if schema is None:
            return self._part.replaced(record, None, self._without_schema(value))
        if not self._field:
            target = self._target_schema(schema.optional)
            return self._part.replaced(record, target, self._converted(value, _kind_of_schema(schema)))
        struct = None if value is None else require_struct(value, _PURPOSE)
        updated = self._schemas(schema)
        return self._part.replaced(record, updated, struct and self._in_struct(struct, updated))

    def _without_schema(self, value: Any) -> Any:
        if value is None or not self._field:
            return self._converted(value, None)
        found = require_map(value, _PURPOSE)
        return found | {self._field: self._converted(found.get(self._field), None)}

    def _in_struct(self, struct: Struct, updated: Schema) -> Struct:
        return Struct.of(updated, (self._field_of(struct, field) for field in struct.schema.fields))

    def _field_of(self, struct: Struct, field: Field) -> Any:
        value = field_value(struct, field, self._with_default)
        if field.name != self._field:
            return value
        return self._converted(value, _kind_of_schema(field.schema))

    def _updated(self, schema: Schema) -> Schema:
        fields = [
            (
                field.name,
                self._target_schema(field.schema.optional) if field.name == self._field else field.schema,
            )
            for field in schema.fields
        ]
        updated = struct_like(schema, fields, optional=schema.optional)
        if schema.default is None:
            return updated
        return with_default(updated, self._in_struct(schema.default, updated))

    def _target_schema(self, optional: bool) -> Schema:
        schema = _SCHEMAS[self._target]
        return schema.replace(optional=True) if optional else schema

    def _converted(self, value: Any, kind: str | None) -> Any:
        if value is None:
            return None
        return self._from_moment(self._to_moment(value, kind or _kind_of_value(value)))

    def _to_moment(self, value: Any, kind: str) -> datetime:
        if kind == "string":
            return self._parsed(value)
        if kind == "unix":
            if not isinstance(value, int) or isinstance(value, bool):
                raise DataError(f"Expected Unix timestamp to be a Long, but found class {java_class(value)}")
            return logical.datetime_of(_scaled(value, -self._units))
        if not isinstance(value, datetime):
            raise DataError(f"Expected {kind} to be a java.util.Date, but found class {java_class(value)}")
        return value

    def _parsed(self, value: Any) -> datetime:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a String, but found class {java_class(value)}")
        if self._format is None:
            raise DataError("TimestampConverter needs the setting format to read timestamps from text")
        try:
            return self._format.parse(value)
        except ValueError:
            raise DataError(
                f"Could not parse timestamp: value ({value}) does not match pattern ({self._format.pattern})"
            ) from None

    def _from_moment(self, moment: datetime) -> Any:
        if self._target == "string":
            return self._format.format(moment) if self._format is not None else str(moment)
        if self._target == "unix":
            return _scaled(logical.millis_of(moment), self._units)
        if self._target == "Timestamp":
            return moment
        of_day = logical.millis_of(moment) % logical.MILLIS_PER_DAY
        return logical.datetime_of(of_day if self._target == "Time" else logical.millis_of(moment) - of_day)


def _date_format(pattern: str, target: str) -> DateFormat | None:
    if not pattern.strip():
        if target == "string":
            raise ConfigError(
                "TimestampConverter requires format option to be specified when using string timestamps"
            )
        return None
    try:
        return DateFormat(pattern)
    except ValueError:
        raise ConfigError(
            "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: "
            f"{pattern}"
        ) from None


def _scaled(value: int, units: int) -> int:
    """Multiply, or divide by a negative factor towards zero."""
    if units > 0:
        return value * units
    return value // -units if value >= 0 else -(-value // -units)


def _kind_of_schema(schema: Schema) -> str:
    if schema.name in _KINDS:
        return _KINDS[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


def _kind_of_value(value: Any) -> str:
    if isinstance(value, datetime):
        return "Timestamp"
    if isinstance(value, int) and not isinstance(value, bool):
        return "unix"
    if isinstance(value, str):
        return "string"
    raise DataError(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")
