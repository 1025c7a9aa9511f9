"""Records as documents, for targets that store JSON: one text form and one plain form of any value."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from moldau.pipelines.connect.converters.json.converter import JsonConverter
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.data.values.text import convert_to_string


class JsonText:
    """Writes values as JSON without schemas; decimals are numbers."""

    def __init__(self) -> None:
        self._converter = JsonConverter()
        self._converter.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"})

    def of(self, topic: str, schema: Schema | None, value: Any) -> str:
        found = self._converter.from_connect(topic, (), schema, value)
        return "null" if found is None else found.decode()


def plain(schema: Schema | None, value: Any) -> Any:
    """Return structs and maps as dicts; times stay datetimes, decimals stay decimals."""
    if isinstance(value, Struct):
        return {field.name: plain(field.schema, value.value_of(field)) for field in value.schema.fields}
    if isinstance(value, dict):
        inner = schema.value_schema if schema is not None and schema.type is Type.MAP else None
        return {str(name): plain(inner, each) for name, each in value.items()}
    if isinstance(value, list):
        inner = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return [plain(inner, each) for each in value]
    return value


def key_text(record: SinkRecord) -> str | None:
    """Return a key as text: a single value as it is, others as JSON; None if there is none."""
    key = record.key
    if key is None:
        return None
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    if isinstance(key, str | bool | int | float | Decimal | datetime):
        return scalar_text(record.key_schema, key)
    return JsonText().of(record.topic, record.key_schema, key)


def scalar_text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, datetime):
        return str(logical.millis_of(value))
    return convert_to_string(schema, value) or ""


def coordinates(record: SinkRecord) -> str:
    """Return the name of a record that is the same whenever it is delivered."""
    return f"{record.original_topic}+{record.original_partition}+{record.original_offset}"
