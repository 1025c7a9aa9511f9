"""Conversion of values to the type of another schema."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from moldau.base.java_numbers import java_double
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.numbers import float32, parse_decimal, to_integer
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class
from moldau.pipelines.connect.data.values.text import convert_to_string

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def convert_to(target: Schema, value: Any) -> Any:
    """Return a value without schema as one of the target's type."""
    if value is None:
        if target.optional:
            return None
        raise DataError("Unable to convert a null value to a schema that requires a value")
    if target.type in _BITS:
        return _to_integer(target, value)
    if target.type is Type.FLOAT32:
        return float32(as_double(value))
    if target.type is Type.FLOAT64:
        return as_double(value)
    if target.type is Type.BOOLEAN:
        return value if isinstance(value, bool) else as_long(value) != 0
    if target.type is Type.STRING:
        return convert_to_string(None, value)
    if target.name == logical.DECIMAL_NAME:
        return _to_decimal(target, value)
    return _of_class(target, value)


def _to_integer(target: Schema, value: Any) -> Any:
    if isinstance(value, datetime) and target.name in _DATES:
        return value
    number = as_long(value)
    if target.name in _DATES:
        return _DATES[target.name](target, number)
    return to_integer(number, _BITS[target.type])


_DATES: dict[str | None, Any] = {
    logical.DATE_NAME: logical.date_from_days,
    logical.TIME_NAME: logical.time_from_millis,
    logical.TIMESTAMP_NAME: logical.timestamp_from_millis,
}
_CLASSES: dict[Type, type] = {Type.BYTES: bytes, Type.ARRAY: list, Type.MAP: dict, Type.STRUCT: Struct}


def _of_class(target: Schema, value: Any) -> Any:
    if target.type is Type.BYTES and isinstance(value, Decimal):
        return logical.decimal_to_bytes(target, value)
    if not isinstance(value, _CLASSES[target.type]):
        raise DataError(f"Unable to convert {value} (class {java_class(value)}) to {target}")
    return value


def _to_decimal(target: Schema, value: Any) -> Decimal:
    if isinstance(value, bytes):
        return logical.decimal_from_bytes(target, value)
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(java_double(float(value)))
    if isinstance(value, str):
        return parse_decimal(value)
    raise DataError(f"Unable to convert {value} (class {java_class(value)}) to {target}")


def as_long(value: Any) -> int:
    """Return a number, or the number that a text contains, as 64-bit integer."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return to_integer(value, 64)
    if isinstance(value, str):
        try:
            return to_integer(parse_decimal(value), 64)
        except ValueError:
            pass
    raise DataError(f"Unable to convert {value} (class {java_class(value)}) to a number")


def as_double(value: Any) -> float:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(parse_decimal(value))
        except ValueError:
            pass
    return float(as_long(value))
