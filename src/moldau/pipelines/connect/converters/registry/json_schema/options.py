"""What the mapping between Connect and JSON Schema depends on, and the names that both directions use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.pipelines.connect.converters.registry.names import parameters_of
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.schema import Schema, Type

NAMESPACE: Final = "io.confluent.connect.json"
ENUM, ONE_OF = f"{NAMESPACE}.Enum", f"{NAMESPACE}.OneOf"
ONE_OF_FIELD: Final = f"{ONE_OF}.field."
NULL_MARKER: Final = "<NULL>"
CONNECT_TYPE, CONNECT_VERSION = "connect.type", "connect.version"
CONNECT_INDEX, CONNECT_PARAMETERS = "connect.index", "connect.parameters"
KEY, VALUE = "key", "value"
#: The type in JSON Schema, and `connect.type`.
TYPES: Final[Mapping[Type, tuple[str, str | None]]] = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
    Type.BOOLEAN: ("boolean", None),
    Type.STRING: ("string", None),
    Type.BYTES: ("string", "bytes"),
    Type.ARRAY: ("array", None),
    Type.MAP: ("object", "map"),
    Type.STRUCT: ("object", None),
}


@dataclass(frozen=True, slots=True)
class Options:
    additional_properties: bool = True
    optional_if_not_required: bool = False
    numeric_decimals: bool = False
    flatten_singletons: bool = True
    ignore_defaults: bool = False


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name == ONE_OF


def is_enum(schema: Schema) -> bool:
    return schema.type is Type.STRING and ENUM in parameters_of(schema)


def has_text_keys(schema: Schema) -> bool:
    """Return whether a map is a JSON object; otherwise it is an array of entries."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and not key.optional


def has_decimals(schema: Schema | None) -> bool:
    """Return whether numbers have to be read exactly."""
    if schema is None:
        return False
    if schema.name == logical.DECIMAL_NAME:
        return True
    if schema.type is Type.STRUCT:
        return any(has_decimals(each.schema) for each in schema.fields)
    if schema.type is Type.MAP:
        return has_decimals(schema.key_schema) or has_decimals(schema.value_schema)
    return schema.type is Type.ARRAY and has_decimals(schema.value_schema)
