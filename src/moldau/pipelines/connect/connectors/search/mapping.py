"""Documents and mappings of records: values as JSON, schemas as types of fields."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

_TYPES: Final = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}
_LOGICAL: Final = {
    logical.DECIMAL_NAME: "double",
    logical.DATE_NAME: "date",
    logical.TIME_NAME: "date",
    logical.TIMESTAMP_NAME: "date",
}
_TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


def properties_of(schema: Schema, *, compact: bool) -> dict[str, Any]:
    """Return the mapping of a struct's fields."""
    return {field.name: _field(field.schema, compact=compact) for field in schema.fields}


def _field(schema: Schema, *, compact: bool) -> dict[str, Any]:
    if schema.name in _LOGICAL:
        return {"type": _LOGICAL[schema.name]}
    if schema.type is Type.STRING:
        return dict(_TEXT)
    if schema.type is Type.STRUCT:
        return {"properties": properties_of(schema, compact=compact)}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        # A field may always have several values.
        return _field(schema.value_schema, compact=compact)
    if schema.type is Type.MAP:
        keys, values = schema.key_schema, schema.value_schema
        if keys is None or values is None or (compact and keys.type is Type.STRING):
            return {"type": "object"}
        parts = {"key": _field(keys, compact=compact), "value": _field(values, compact=compact)}
        return {"type": "nested", "properties": parts}
    return {"type": _TYPES[schema.type]}


def document_text(schema: Schema | None, value: Any, *, compact: bool) -> str:
    """Return the document of a value, which must be an object."""
    found = _plain(schema, value, compact)
    if not isinstance(found, dict):
        raise DataError("A document is made of a struct or a map, not of a single value")
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(schema: Schema | None, value: Any, compact: bool) -> Any:
    if isinstance(value, Struct):
        fields = value.schema.fields
        return {field.name: _plain(field.schema, value.value_of(field), compact) for field in fields}
    if isinstance(value, dict):
        keys = schema.key_schema if schema is not None and schema.type is Type.MAP else None
        values = schema.value_schema if schema is not None and schema.type is Type.MAP else None
        if keys is None or (compact and keys.type is Type.STRING):
            return {str(key): _plain(values, each, compact) for key, each in value.items()}
        return [
            {"key": _plain(keys, key, compact), "value": _plain(values, each, compact)}
            for key, each in value.items()
        ]
    if isinstance(value, list):
        inner = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return [_plain(inner, each, compact) for each in value]
    if isinstance(value, datetime):
        return logical.millis_of(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"JSON has no number {value}")
    return value
