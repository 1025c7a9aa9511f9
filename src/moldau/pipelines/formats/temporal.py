"""Times and dates in JSON and DELIMITED: milliseconds and days since 1970, as in ksqlDB, or text.

Spark reads them as strings (`wire_type`), which `from_wire` converts to the types of the schema, also inside
arrays, maps and structs. A string that is neither a number nor a time is `unreadable` instead of null: its
record does not match the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    TimeType,
)


def has_times(kind: DataType) -> bool:
    """Return whether a type contains a time or a date."""
    if isinstance(kind, TimestampType | DateType | TimeType):
        return True
    if isinstance(kind, ArrayType):
        return has_times(kind.elementType)
    if isinstance(kind, MapType):
        return has_times(kind.valueType)
    return isinstance(kind, StructType) and any(has_times(field.dataType) for field in kind.fields)


def wire_type(kind: DataType) -> DataType:
    """Return the type to read from text: string in place of times and dates."""
    if isinstance(kind, TimestampType | DateType | TimeType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(wire_type(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, wire_type(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, wire_type(field.dataType)) for field in kind.fields])
    return kind


def from_wire(value: Column, kind: DataType) -> Column:
    return _converted(value, kind, _read)


def to_wire(value: Column, kind: DataType) -> Column:
    return _converted(value, kind, _written)


def _converted(value: Column, kind: DataType, convert: Callable[[Column, DataType], Column]) -> Column:
    """Return the value with every time and date in it converted."""
    if not has_times(kind):
        return value
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda one: _converted(one, kind.elementType, convert))
    if isinstance(kind, MapType):
        return F.transform_values(value, lambda _, one: _converted(one, kind.valueType, convert))
    if isinstance(kind, StructType):
        parts = [_converted(value[field.name], field.dataType, convert) for field in kind.fields]
        named = [part.alias(field.name) for part, field in zip(parts, kind.fields, strict=True)]
        return F.when(value.isNotNull(), F.struct(*named))
    return convert(value, kind)


def _read(value: Column, kind: DataType) -> Column:
    number = value.try_cast("bigint")
    if isinstance(kind, DateType):
        return F.coalesce(F.date_from_unix_date(number.try_cast("int")), value.try_cast("date"))
    if isinstance(kind, TimeType):
        return F.coalesce(F.time_from_millis(number), value.try_cast("time"))
    return F.coalesce(F.timestamp_millis(number), value.try_cast("timestamp"))


def _written(value: Column, kind: DataType) -> Column:
    if isinstance(kind, DateType):
        return F.unix_date(value)
    if isinstance(kind, TimeType):
        return F.time_to_millis(value)
    return F.unix_millis(value)


def unreadable(value: Column, kind: DataType) -> Column:
    """Return whether a value has text that is not a time where the schema has a time."""
    if not has_times(kind):
        return F.lit(False)
    if isinstance(kind, ArrayType):
        found = F.exists(value, lambda one: unreadable(one, kind.elementType))
    elif isinstance(kind, MapType):
        found = F.exists(F.map_values(value), lambda one: unreadable(one, kind.valueType))
    elif isinstance(kind, StructType):
        parts = [unreadable(value[field.name], field.dataType) for field in kind.fields]
        found = reduce(lambda left, right: left | right, parts)
    else:
        found = value.isNotNull() & from_wire(value, kind).isNull()
    return F.coalesce(found, F.lit(False))
