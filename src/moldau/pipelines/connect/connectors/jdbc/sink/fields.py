"""Which fields of a record become columns, and which columns are the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.connect.connectors.jdbc.sink import settings as names
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import INT32, INT64, STRING, Schema, Type

#: Returns the value of one column of a record.
Get = Callable[[SinkRecord], Any]


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The columns of records with the same schemas: keys first, each with its schema and how to get it."""

    keys: tuple[str, ...]
    others: tuple[str, ...]
    schemas: Mapping[str, Schema]
    get: Mapping[str, Get]


class FieldSelection:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._pk_mode: str = config[names.PK_MODE].lower()
        self._pk_fields: list[str] = config[names.PK_FIELDS]
        self._only = set(config[names.FIELDS])
        self._null_to_default: bool = config[names.NULL_TO_DEFAULT]

    def keys(self, record: SinkRecord) -> RecordFields:
        """Return the key's columns alone, for a deletion."""
        found = self._keys(record)
        schemas = {name: schema for name, (schema, _) in found.items()}
        return RecordFields(tuple(found), (), schemas, {name: get for name, (_, get) in found.items()})

    def all(self, record: SinkRecord) -> RecordFields:
        """Return the columns of a record whose value is a struct."""
        schema = record.value_schema
        if schema is None or schema.type is not Type.STRUCT:
            raise ConnectError(
                "The JDBC sink needs records whose value is a struct with a schema: use a converter with "
                f"schemas; topic {record.topic}, partition {record.partition}, offset {record.offset}"
            )
        keys = self._keys(record)
        found = dict(keys)
        for field in schema.fields:
            if field.name not in keys and (not self._only or field.name in self._only):
                found[field.name] = (field.schema, self._value_field(field.index, field.schema))
        return RecordFields(
            tuple(keys),
            tuple(name for name in found if name not in keys),
            {name: each for name, (each, _) in found.items()},
            {name: get for name, (_, get) in found.items()},
        )

    def _keys(self, record: SinkRecord) -> dict[str, tuple[Schema, Get]]:
        if self._pk_mode == names.KAFKA:
            topic, partition, offset = self._pk_fields or names.KAFKA_COLUMNS
            return {
                topic: (STRING, lambda each: each.original_topic),
                partition: (INT32, lambda each: each.original_partition),
                offset: (INT64, lambda each: each.original_offset),
            }
        if self._pk_mode == names.RECORD_KEY:
            return self._record_key(record)
        if self._pk_mode == names.RECORD_VALUE:
            schema = record.value_schema
            if schema is None or schema.type is not Type.STRUCT:
                raise ConnectError(
                    "pk.mode is record_value, but the record's value is no struct with a schema"
                )
            wanted = self._pk_fields or [field.name for field in schema.fields]
            return {
                name: (field.schema, self._value_field(field.index, field.schema))
                for name, field in _chosen(schema, wanted, "value")
            }
        return {}

    def _record_key(self, record: SinkRecord) -> dict[str, tuple[Schema, Get]]:
        schema = record.key_schema
        if schema is None:
            raise ConnectError("pk.mode is record_key, but the record's key has no schema")
        if record.key is None:
            raise ConnectError("pk.mode is record_key, but the record has no key")
        if schema.type.is_primitive:
            if len(self._pk_fields) != 1:
                raise ConnectError(
                    "Need exactly one PK column defined since the key schema for records is a primitive "
                    f"type, defined columns are: {self._pk_fields}"
                )
            return {self._pk_fields[0]: (schema, lambda each: each.key)}
        if schema.type is not Type.STRUCT:
            raise ConnectError(f"Key schema must be primitive type or Struct, but is of type: {schema.type}")
        wanted = self._pk_fields or [field.name for field in schema.fields]
        return {
            name: (field.schema, _key_field(field.index)) for name, field in _chosen(schema, wanted, "key")
        }

    def _value_field(self, index: int, schema: Schema) -> Get:
        if schema.default is None or not self._null_to_default:
            return lambda record: record.value.values[index]

        def with_default(record: SinkRecord) -> Any:
            value = record.value.values[index]
            return schema.default if value is None else value

        return with_default


def _key_field(index: int) -> Get:
    return lambda record: record.key.values[index]


def _chosen(schema: Schema, wanted: Sequence[str], part: str) -> list[tuple[str, Any]]:
    found = []
    for name in wanted:
        field = schema.field(name)
        if field is None:
            fields = ", ".join(each.name for each in schema.fields)
            raise ConnectError(f"The key field {name} is not in the record's {part}, which has {fields}")
        found.append((name, field))
    return found
