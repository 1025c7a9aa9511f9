"""What the mapping between Connect and Protobuf depends on, and the names that both directions use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.pipelines.connect.converters.registry.names import parameters_of
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.schema import Schema, Type

NAMESPACE: Final = "io.confluent.connect.protobuf"
DEFAULT_NAME: Final = "ConnectDefault"
ENUM, TAG, PROTOBUF_TYPE = f"{NAMESPACE}.Enum", f"{NAMESPACE}.Tag", f"{NAMESPACE}.Type"
UNION, WRAPPER = f"{NAMESPACE}.Union", f"{NAMESPACE}.Wrapper"
UNION_PREFIX: Final = f"{UNION}."
PRECISION, SCALE = "connect.decimal.precision", "scale"
CONNECT_TYPE: Final = "connect.type"
ENTRY, KEY, VALUE = "Entry", "key", "value"

#: Logical type → file and message type.
LOGICAL: Final[Mapping[str | None, tuple[str, str]]] = {
    logical.DECIMAL_NAME: ("confluent/type/decimal.proto", "confluent.type.Decimal"),
    logical.DATE_NAME: ("google/type/date.proto", "google.type.Date"),
    logical.TIME_NAME: ("google/type/timeofday.proto", "google.type.TimeOfDay"),
    logical.TIMESTAMP_NAME: ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
}
LOGICAL_BY_MESSAGE: Final = {message: name for name, (_, message) in LOGICAL.items()}
META, WRAPPERS = "confluent/meta.proto", "google/protobuf/wrappers.proto"
SCALARS: Final[Mapping[Type, str]] = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS_BY_SCALAR: Final = {
    "double": "DoubleValue",
    "float": "FloatValue",
    "int64": "Int64Value",
    "uint64": "UInt64Value",
    "int32": "Int32Value",
    "uint32": "UInt32Value",
    "bool": "BoolValue",
    "string": "StringValue",
    "bytes": "BytesValue",
}
#: Message type of a wrapper → type of its value.
WRAPPED: Final[Mapping[str, Type]] = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}


@dataclass(frozen=True, slots=True)
class Options:
    enhanced: bool = False
    scrub: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    struct_for_nulls: bool = False
    index_for_unions: bool = True
    flatten_unions: bool = False
    ignore_defaults: bool = False


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


def enum_name(schema: Schema) -> str | None:
    """Return the name of the enum that text or numbers stand for."""
    return parameters_of(schema).get(ENUM)


def wrapper_of(schema: Schema) -> str:
    """Return the message type that wraps a primitive value."""
    declared = parameters_of(schema).get(PROTOBUF_TYPE, SCALARS[schema.type])
    scalar = declared.replace("sfixed", "int").replace("fixed", "uint").replace("sint", "int")
    return f"google.protobuf.{_WRAPPERS_BY_SCALAR[scalar]}"
