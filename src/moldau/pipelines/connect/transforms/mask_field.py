"""MaskField: replace the values of fields by zero, an empty text, or a given text or number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    ValidList,
)
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.logical import EPOCH
from moldau.pipelines.connect.data.numbers import Float32, float32, parse_decimal, to_integer
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class
from moldau.pipelines.connect.data.values.conversion import as_double, as_long
from moldau.pipelines.connect.transforms.interface import Part, Transformation, with_null_replacement
from moldau.pipelines.connect.transforms.requirements import (
    field_value,
    require_map,
    require_struct,
)

_PURPOSE = "mask fields"
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}
#: The first class that a value is an instance of decides.
_NOTHING: list[tuple[type, Any]] = [
    (bool, False),
    (int, 0),
    (Float32, float32(0.0)),
    (float, 0.0),
    (Decimal, Decimal(0)),
    (datetime, EPOCH),
    (str, ""),
]


class MaskField(Transformation):
    config: ClassVar[ConfigDef] = with_null_replacement(
        ConfigDef()
        .define(
            "fields",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The fields to mask.",
            validator=ValidList(empty_allowed=False),
        )
        .define(
            "replacement",
            ConfigType.STRING,
            None,
            Importance.LOW,
            "The value that replaces texts and numbers; without it they become empty or zero.",
            validator=NonEmptyString(),
        )
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._fields: list[str] = settings["fields"]
        self._replacement: str | None = settings["replacement"]
        self._with_default: bool = settings["replace.null.with.default"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._part.schema_of(record), self._part.value_of(record)
        if schema is None:
            found = require_map(value, _PURPOSE)
            masked = found | {field: self._masked(None, found.get(field)) for field in self._fields}
            return self._part.replaced(record, None, masked)
        struct = require_struct(value, _PURPOSE)
        return self._part.replaced(record, schema, Struct.of(struct.schema, self._values(struct)))

    def _values(self, struct: Struct) -> Iterator[Any]:
        for field in struct.schema.fields:
            value = field_value(struct, field, self._with_default)
            yield self._masked(field.schema, value) if field.name in self._fields else value

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        if self._replacement is None:
            return _nothing(value)
        return _replaced(schema, value, self._replacement)


def _nothing(value: Any) -> Any:
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        return {}
    for kind, nothing in _NOTHING:
        if isinstance(value, kind):
            return nothing
    raise DataError(f"Cannot mask value of type: class {java_class(value)}")


def _replaced(schema: Schema | None, value: Any, replacement: str) -> Any:
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise DataError(f"Cannot mask value of type class {java_class(value)} with custom replacement.")
    if isinstance(value, int):
        return to_integer(as_long(replacement), _BITS.get(schema.type, 64) if schema is not None else 64)
    if isinstance(value, float):
        single = isinstance(value, Float32) or (schema is not None and schema.type is Type.FLOAT32)
        return float32(as_double(replacement)) if single else as_double(replacement)
    try:
        return parse_decimal(replacement)
    except ValueError:
        raise DataError(f"Unable to convert {replacement} (class java.lang.String) to number") from None
