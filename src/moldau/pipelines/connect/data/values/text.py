"""Text of values: Connect's form, which can be parsed again, and Java's `toString`."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from moldau.base.java_numbers import java_float
from moldau.pipelines.connect.data.date_format import DateFormat
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.logical import MILLIS_PER_DAY, millis_of
from moldau.pipelines.connect.data.numbers import number_text
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class

DATE_PATTERN = "yyyy-MM-dd"
TIME_PATTERN = "HH:mm:ss.SSS'Z'"
TIMESTAMP_PATTERN = f"{DATE_PATTERN}'T'{TIME_PATTERN}"

_DATE = DateFormat(DATE_PATTERN)
_TIME = DateFormat(TIME_PATTERN)
_TIMESTAMP = DateFormat(TIMESTAMP_PATTERN)


def datetime_text(value: datetime) -> str:
    """Return a date, a time or a timestamp, whichever has no part that is zero."""
    millis = millis_of(value)
    if millis < MILLIS_PER_DAY:
        return _TIME.format(value)
    return (_TIMESTAMP if millis % MILLIS_PER_DAY else _DATE).format(value)


def convert_to_string(schema: Schema | None, value: Any) -> str | None:
    """Return the text of a value; parts of lists, maps and structs are quoted."""
    return None if value is None else _text(schema, value, embedded=False)


def _text(schema: Schema | None, value: Any, *, embedded: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return _number(schema, value)
    if isinstance(value, str):
        return _quoted(value) if embedded else value
    if isinstance(value, bytes):
        encoded = b64encode(value).decode()
        return f'"{encoded}"' if embedded else encoded
    if isinstance(value, datetime):
        return datetime_text(value)
    return _composed_text(schema, value)


def _composed_text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, list):
        element = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return f"[{','.join(_text(element, entry, embedded=True) for entry in value)}]"
    if isinstance(value, dict):
        keys, values = _of_map(schema)
        pairs = (
            (_text(keys, key, embedded=True), _text(values, one, embedded=True)) for key, one in value.items()
        )
    elif isinstance(value, Struct):
        pairs = (
            (_quoted(field.name), _text(field.schema, value.value_of(field), embedded=True))
            for field in value.schema.fields
        )
    else:
        raise DataError(f"Failed to serialize unexpected value type {java_class(value)}: {value}")
    return f"{{{','.join(f'{key}:{one}' for key, one in pairs)}}}"


def _of_map(schema: Schema | None) -> tuple[Schema | None, Schema | None]:
    if schema is None or schema.type is not Type.MAP:
        return None, None
    return schema.key_schema, schema.value_schema


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(schema: Schema | None, value: int | float | Decimal) -> str:
    if schema is not None and schema.type is Type.FLOAT32 and isinstance(value, float):
        return java_float(value)
    return number_text(value)


def to_string(schema: Schema | None, value: Any) -> str:
    """Return the text that Java's `toString` has for a value, which StringConverter writes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return _number(schema, value)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        return _JAVA_DATE.format(moment)
    if isinstance(value, list):
        element = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return f"[{', '.join(to_string(element, entry) for entry in value)}]"
    if isinstance(value, dict):
        keys, values = _of_map(schema)
        pairs = (f"{to_string(keys, key)}={to_string(values, entry)}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Struct):
        return _struct_string(value)
    return str(value)


_JAVA_DATE = DateFormat("EEE MMM dd HH:mm:ss z yyyy")


def _struct_string(value: Struct) -> str:
    fields = zip(value.schema.fields, value.values, strict=True)
    texts = (f"{field.name}={to_string(field.schema, one)}" for field, one in fields if one is not None)
    return f"Struct{{{','.join(texts)}}}"
