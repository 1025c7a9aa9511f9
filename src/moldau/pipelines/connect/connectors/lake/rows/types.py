"""The Arrow type of a Connect schema, and of a value without schema.

Integers shorter than 32 bits become 32 bits, because Iceberg has none. Types of an existing table are
brought into the same form by `plain`: without the large variants and without metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

_MAX_DIGITS: Final = 38
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_PRIMITIVES: Final[Mapping[Type, pa.DataType]] = {
    Type.INT8: pa.int32(),
    Type.INT16: pa.int32(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_INFERRED: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime: _TIMESTAMP,
}


@lru_cache(maxsize=1000)
def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a struct schema."""
    return pa.schema([_field(field.name, field.schema) for field in schema.fields])


def arrow_type(schema: Schema | None) -> pa.DataType:
    if schema is None:
        raise DataError("An array or map without a schema of its elements has no column type.")
    if schema.type is Type.STRUCT:
        if not schema.fields:
            raise DataError(f"The struct {schema.name or ''} has no fields and therefore no column type.")
        return pa.struct([_field(field.name, field.schema) for field in schema.fields])
    if schema.type is Type.ARRAY:
        return pa.list_(_element("element", schema.value_schema))
    if schema.type is Type.MAP:
        return pa.map_(arrow_type(schema.key_schema), _element("value", schema.value_schema))
    return _logical(schema) or _PRIMITIVES[schema.type]


def _field(name: str, schema: Schema) -> pa.Field:
    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def _element(name: str, schema: Schema | None) -> pa.Field:
    return pa.field(name, arrow_type(schema), nullable=schema is None or schema.optional)


def _logical(schema: Schema) -> pa.DataType | None:
    if schema.name == logical.DECIMAL_NAME:
        return pa.decimal128(_MAX_DIGITS, logical.decimal_scale(schema))
    if schema.name == logical.DATE_NAME:
        return pa.date32()
    if schema.name == logical.TIME_NAME:
        return pa.time64("us")
    return _TIMESTAMP if schema.name == logical.TIMESTAMP_NAME else None


def inferred_type(value: Any) -> pa.DataType | None:
    """Return the type of a value without schema; None if it has none, like an empty list."""
    if isinstance(value, Decimal):
        return pa.decimal128(_MAX_DIGITS, max(logical.scale_of(value), 0))
    if isinstance(value, Struct):
        return arrow_type(value.schema)
    if isinstance(value, list):
        element = next((found for each in value if (found := inferred_type(each)) is not None), None)
        return None if element is None else pa.list_(pa.field("element", element))
    if isinstance(value, dict):
        fields = inferred_fields(value)
        return pa.struct(fields) if fields else None
    return next((_INFERRED[one] for one in type(value).__mro__ if one in _INFERRED), None)


def inferred_fields(value: Mapping[Any, Any]) -> list[pa.Field]:
    """Return the columns of a map; entries whose type is unknown are left out."""
    pairs = ((str(name), inferred_type(each)) for name, each in value.items())
    return [pa.field(name, found) for name, found in pairs if found is not None]


def without_times(schema: pa.Schema) -> pa.Schema:
    """Return the columns with times of day as milliseconds, for formats that have no such type."""
    return pa.schema(
        [field.with_type(pa.int32()) if pa.types.is_time(field.type) else field for field in schema]
    )


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type in the form that this package uses."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type), nullable=kind.value_field.nullable))
    if pa.types.is_map(kind):
        value = pa.field("value", plain(kind.item_type), nullable=kind.item_field.nullable)
        return pa.map_(plain(kind.key_type), value)
    if pa.types.is_struct(kind):
        return pa.struct([plain_field(field) for field in kind])
    return kind


def plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain(field.type), nullable=field.nullable)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([plain_field(field) for field in schema])
