"""Checks that a record is of the kind a transformation needs, and schemas derived from another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.records import ConnectRecord, SinkRecord
from moldau.pipelines.connect.data.schema import Field, Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(
            f"Only Map objects supported in absence of schema for [{purpose}], found: {_class_of(value)}"
        )
    return value


def require_struct(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {_class_of(value)}")
    return value


def require_sink_record(record: ConnectRecord, purpose: str) -> SinkRecord:
    if not isinstance(record, SinkRecord):
        found = "org.apache.kafka.connect.source.SourceRecord"
        raise DataError(f"Only SinkRecord supported for [{purpose}], found: {found}")
    return record


def _class_of(value: Any) -> str:
    return "null" if value is None else java_class(value)


def struct_like(schema: Schema, fields: list[tuple[str, Schema]], optional: bool = False) -> Schema:
    """Return a struct with the name, version, doc and parameters of another, and other fields."""
    return described_like(schema, Type.STRUCT, optional, fields)


def described_like(
    schema: Schema, kind: Type, optional: bool = False, fields: Iterable[tuple[str, Schema]] = ()
) -> Schema:
    """Return a schema of a type with the name, version, doc and parameters of another."""
    return Schema(
        kind,
        optional=optional,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=fields,
    )


def field_value(struct: Struct, field: Field, with_default: bool) -> Any:
    return struct.value_of(field) if with_default else struct.values[field.index]


def non_empty_list(name: str, value: Any) -> None:
    """A validator: the list has an entry."""
    if not value:
        raise ConfigError.invalid(name, value, "Empty list")
