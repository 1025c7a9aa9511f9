"""Connect's schema of Arrow and Avro types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type, array, map_of, struct

#: The name in Avro of structs that have none, as in Confluent's converter.
DEFAULT_NAME: Final = "ConnectDefault"
_SIMPLE: Final = (
    (pa.types.is_boolean, Type.BOOLEAN),
    (pa.types.is_int8, Type.INT8),
    (pa.types.is_int16, Type.INT16),
    (pa.types.is_uint8, Type.INT16),
    (pa.types.is_int32, Type.INT32),
    (pa.types.is_uint16, Type.INT32),
    (pa.types.is_integer, Type.INT64),
    (pa.types.is_float64, Type.FLOAT64),
    (pa.types.is_floating, Type.FLOAT32),
    (pa.types.is_string, Type.STRING),
    (pa.types.is_large_string, Type.STRING),
    (pa.types.is_binary, Type.BYTES),
    (pa.types.is_large_binary, Type.BYTES),
    (pa.types.is_fixed_size_binary, Type.BYTES),
)
_AVRO: Final[Mapping[str, Type]] = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "enum": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
}


def schema_of(kind: pa.DataType, *, optional: bool) -> Schema:
    """Return the schema of values of an Arrow type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        fields = [(field.name, schema_of(field.type, optional=field.nullable)) for field in kind]
        return struct(fields, optional=optional)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = kind.value_field
        return array(schema_of(element.type, optional=element.nullable), optional=optional)
    if pa.types.is_map(kind):
        item = schema_of(kind.item_type, optional=kind.item_field.nullable)
        return map_of(schema_of(kind.key_type, optional=False), item, optional=optional)
    if pa.types.is_decimal(kind):
        return logical.decimal_schema(kind.scale, optional=optional)
    if pa.types.is_timestamp(kind):
        return logical.TIMESTAMP.replace(optional=optional)
    if pa.types.is_date(kind):
        return logical.DATE.replace(optional=optional)
    if pa.types.is_time(kind):
        return logical.TIME.replace(optional=optional)
    found = next((name for applies, name in _SIMPLE if applies(kind)), None)
    if found is None:
        raise DataError(f"Columns of the type {kind} cannot be read.")
    return Schema(found, optional=optional)


def schema_of_avro(node: Any, named: Mapping[str, Any]) -> Schema:
    """Return the schema of an Avro schema; of unions only those of a type with null."""
    if isinstance(node, list):
        others = [each for each in node if each != "null"]
        if len(others) != 1:
            raise DataError(f"Avro unions of several types cannot be read: {node}")
        return schema_of_avro(others[0], named).replace(optional=len(node) > 1)
    if isinstance(node, str):
        if node in _AVRO:
            return Schema(_AVRO[node])
        return schema_of_avro(named[node], named)
    kind = node["type"]
    if kind in ("record", "error"):
        fields = [(field["name"], schema_of_avro(field["type"], named)) for field in node["fields"]]
        name: str | None = node.get("name")
        return struct(fields, name=None if name is None or name.startswith(DEFAULT_NAME) else name)
    if kind == "array":
        return array(schema_of_avro(node["items"], named))
    if kind == "map":
        return map_of(Schema(Type.STRING), schema_of_avro(node["values"], named))
    return _avro_logical(node) or schema_of_avro(kind, named)


def _avro_logical(node: Mapping[str, Any]) -> Schema | None:
    name = node.get("logicalType", "")
    if name == "decimal":
        return logical.decimal_schema(node.get("scale", 0))
    if name == "date":
        return logical.DATE
    if name.startswith("time-"):
        return logical.TIME
    return logical.TIMESTAMP if name.startswith(("timestamp-", "local-timestamp-")) else None
