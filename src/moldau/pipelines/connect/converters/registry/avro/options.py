"""What the mapping between Connect and Avro depends on, and the names that both directions use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.pipelines.connect.converters.registry.names import parameters_of, split
from moldau.pipelines.connect.data.schema import Schema, Type

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
DEFAULT_FULL_NAME: Final = f"{NAMESPACE}.{DEFAULT_NAME}"
MAP_ENTRY: Final = "MapEntry"
KEY, VALUE = "key", "value"

CONNECT_NAME, CONNECT_DOC, CONNECT_VERSION = "connect.name", "connect.doc", "connect.version"
CONNECT_RECORD_DOC, CONNECT_ENUM_DOC = "connect.record.doc", "connect.enum.doc"
CONNECT_DEFAULT, CONNECT_PARAMETERS, CONNECT_TYPE = "connect.default", "connect.parameters", "connect.type"
INTERNAL_TYPE: Final = "connect.internal.type"
FIXED_SIZE, PRECISION = "connect.fixed.size", "connect.decimal.precision"
DEFAULT_PRECISION: Final = 64
RECORD_DOC: Final = f"{NAMESPACE}.record.doc"
FIELD_DOC: Final = f"{NAMESPACE}.field.doc."
ENUM_DOC, ENUM_DEFAULT = f"{NAMESPACE}.enum.doc.", f"{NAMESPACE}.enum.default."
#: Says that the default of a field is that of Avro's field, not one of Connect.
FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
UNION, ENUM = f"{NAMESPACE}.Union", f"{NAMESPACE}.Enum"
ANYTHING: Final = f"{NAMESPACE}.Anything"

AVRO_TYPES: Final[Mapping[Type, str]] = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
    Type.ARRAY: "array",
    Type.MAP: "map",
}
#: The record of values without schema.
ANYTHING_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "Anything",
    "namespace": NAMESPACE,
    "fields": [
        *(
            {"name": kind, "type": ["null", kind], "default": None}
            for kind in ("boolean", "bytes", "double", "float", "int", "long", "string")
        ),
        {"name": "array", "type": ["null", {"type": "array", "items": "Anything"}], "default": None},
        {
            "name": "map",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": MAP_ENTRY,
                        "fields": [{"name": KEY, "type": "Anything"}, {"name": VALUE, "type": "Anything"}],
                    },
                },
            ],
            "default": None,
        },
    ],
}


@dataclass(frozen=True, slots=True)
class Options:
    metadata: bool = True
    enhanced: bool = False
    scrub: bool = False
    discard_docs: bool = False
    optional_map_keys: bool = False
    flatten_singletons: bool = True
    ignore_defaults: bool = False

    def has_text_keys(self, schema: Schema) -> bool:
        """Return whether a map is Avro's map; otherwise it is an array of entries."""
        key = schema.key_schema
        return key is not None and key.type is Type.STRING and (not key.optional or self.optional_map_keys)

    def is_enum(self, schema: Schema) -> bool:
        return self.enhanced and is_enum(schema)

    def member_name(self, schema: Schema) -> str:
        """Return the name of a union's field for a member."""
        if schema.type is Type.STRUCT or is_enum(schema) or is_fixed(schema):
            space, name = split(schema.name or "", self.scrub)
            return f"{space}.{name}" if self.enhanced and space else name
        return AVRO_TYPES[schema.type]


def is_enum(schema: Schema) -> bool:
    return schema.type is Type.STRING and ENUM in parameters_of(schema)


def is_fixed(schema: Schema) -> bool:
    return schema.type is Type.BYTES and schema.name is not None and FIXED_SIZE in parameters_of(schema)


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name == UNION
