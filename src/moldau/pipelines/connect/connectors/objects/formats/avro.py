"""Avro container files, by `fastavro`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

import fastavro

from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.connectors.objects.formats.catalog import Format
from moldau.pipelines.connect.connectors.objects.formats.parquet import connect_value
from moldau.pipelines.connect.connectors.objects.formats.schemas import DEFAULT_NAME, schema_of_avro
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConnectError, DataError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

_TYPES: Final[Mapping[Type, str]] = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final[Mapping[str, tuple[str, str]]] = {
    logical.DATE_NAME: ("int", "date"),
    logical.TIME_NAME: ("int", "time-millis"),
    logical.TIMESTAMP_NAME: ("long", "timestamp-millis"),
}
_DIGITS: Final = 38


class _AvroBuffer:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._codec: str = settings["avro.codec"]
        self._schema: Any = None
        self._values: list[Any] = []

    def add(self, record: SinkRecord) -> None:
        if record.value_schema is None:
            raise DataError("AvroFormat needs values with a schema: use a converter with schemas.")
        if self._schema is None:
            self._schema = fastavro.parse_schema(avro_schema(record.value_schema, DEFAULT_NAME))
        self._values.append(avro_value(record.value_schema, record.value))

    def settle(self) -> list[Refused]:
        return []

    def content(self) -> bytes:
        if not self._values:
            return b""
        output = io.BytesIO()
        # The marker between blocks is fixed, so that equal files have equal bytes.
        fastavro.writer(output, self._schema, self._values, codec=self._codec, sync_marker=bytes(16))
        return output.getvalue()


def avro_schema(schema: Schema, name: str) -> Any:
    """Return the Avro schema; structs without a name get one by their position."""
    found = _required(schema, name)
    return ["null", found] if schema.optional else found


def _required(schema: Schema, name: str) -> Any:
    if schema.name == logical.DECIMAL_NAME:
        scale = logical.decimal_scale(schema)
        return {"type": "bytes", "logicalType": "decimal", "precision": _DIGITS, "scale": scale}
    if schema.name is not None and schema.name in _LOGICAL:
        kind, logical_type = _LOGICAL[schema.name]
        return {"type": kind, "logicalType": logical_type}
    if schema.type is Type.STRUCT:
        full = schema.name or name
        fields = [
            {"name": each.name, "type": avro_schema(each.schema, f"{full}_{each.name}")}
            for each in schema.fields
        ]
        return {"type": "record", "name": full, "fields": fields}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return {"type": "array", "items": avro_schema(schema.value_schema, f"{name}_element")}
    if schema.type is Type.MAP and schema.value_schema is not None:
        if schema.key_schema is None or schema.key_schema.type is not Type.STRING:
            raise DataError("Maps in Avro files need keys of type string.")
        return {"type": "map", "values": avro_schema(schema.value_schema, f"{name}_value")}
    return _TYPES[schema.type]


def avro_value(schema: Schema, value: Any) -> Any:
    """Return a value of Connect as fastavro takes it."""
    if value is None:
        return None
    if isinstance(value, Struct):
        return {each.name: avro_value(each.schema, value.value_of(each)) for each in value.schema.fields}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [avro_value(schema.value_schema, each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None:
        return {key: avro_value(schema.value_schema, each) for key, each in value.items()}
    if schema.name == logical.DATE_NAME:
        return value.date()
    return value.time() if schema.name == logical.TIME_NAME else value


def _read(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    try:
        reader = fastavro.reader(file)
        named: dict[str, Any] = {}
        _collect(reader.writer_schema, named)
        schema = schema_of_avro(reader.writer_schema, named)
        for number, value in enumerate(reader):
            if number >= skip:
                yield SchemaAndValue(schema, connect_value(schema, _with_pairs(schema, value)))
    except (ValueError, EOFError) as error:
        raise ConnectError(f"The file is not valid Avro: {error}") from error


def _collect(node: Any, named: dict[str, Any]) -> None:
    if isinstance(node, list):
        for each in node:
            _collect(each, named)
    elif isinstance(node, dict):
        if "name" in node and node.get("type") in ("record", "enum", "fixed", "error"):
            named[node["name"]] = node
        for part in ("items", "values"):
            _collect(node.get(part), named)
        for field in node.get("fields", ()):
            _collect(field["type"], named)


def _with_pairs(schema: Schema, value: Any) -> Any:
    """Return maps as pairs, as Arrow has them."""
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return {each.name: _with_pairs(each.schema, value[each.name]) for each in schema.fields}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [_with_pairs(schema.value_schema, each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None:
        return [(key, _with_pairs(schema.value_schema, each)) for key, each in value.items()]
    return value


FORMATS: Final = {"avro": Format(".avro", _AvroBuffer, _read, has_schema=True)}
