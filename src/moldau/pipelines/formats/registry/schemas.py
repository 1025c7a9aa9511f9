"""The schemas that sinks register for their columns, as ksqlDB derives them."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
)

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.types import Schema
from moldau.pipelines.formats.avro import avro_schema, avro_type

_MESSAGE = "ConnectDefault1"
_JSON: list[tuple[type[DataType], dict[str, Any]]] = [
    (BooleanType, {"type": "boolean"}),
    (IntegerType, {"type": "integer", "connect.type": "int32"}),
    (LongType, {"type": "integer", "connect.type": "int64"}),
    (DoubleType, {"type": "number", "connect.type": "float64"}),
    (StringType, {"type": "string"}),
    (BinaryType, {"type": "string", "connect.type": "bytes"}),
    (TimestampType, {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"}),
    (DateType, {"type": "integer", "title": "org.apache.kafka.connect.data.Date"}),
    (TimeType, {"type": "integer", "title": "org.apache.kafka.connect.data.Time"}),
    (DecimalType, {"type": "number", "title": "org.apache.kafka.connect.data.Decimal"}),
]
_PROTOBUF: list[tuple[type[DataType], int]] = [
    (BooleanType, FieldDescriptorProto.TYPE_BOOL),
    (IntegerType, FieldDescriptorProto.TYPE_INT32),
    (LongType, FieldDescriptorProto.TYPE_INT64),
    (DoubleType, FieldDescriptorProto.TYPE_DOUBLE),
    (StringType, FieldDescriptorProto.TYPE_STRING),
    (BinaryType, FieldDescriptorProto.TYPE_BYTES),
]


def avro_text(columns: StructType, *, unwrapped: bool) -> Schema:
    if unwrapped:
        field = columns.fields[0]
        return Schema(json.dumps(avro_type(field.dataType, field.name)))
    return Schema(json.dumps(avro_schema(columns)))


def json_text(columns: StructType, *, unwrapped: bool) -> Schema:
    return Schema(json.dumps(_json_type(columns.fields[0].dataType if unwrapped else columns)), "JSON")


def _json_type(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": _nullable(kind.elementType)}
    if isinstance(kind, MapType):
        return {"type": "object", "connect.type": "map", "additionalProperties": _nullable(kind.valueType)}
    if isinstance(kind, StructType):
        fields = enumerate(kind.fields)
        return {
            "type": "object",
            "properties": {one.name: {"connect.index": n, **_nullable(one.dataType)} for n, one in fields},
        }
    found = dict(next(schema for spark, schema in _JSON if isinstance(kind, spark)))
    if isinstance(kind, DecimalType):
        precision = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        found["connect.parameters"] = precision
    return found


def _nullable(kind: DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _json_type(kind)]}


def protobuf_file(columns: StructType) -> FileDescriptorProto:
    """Return a file with one message; its scalar fields are optional, so that null is not zero."""
    file = FileDescriptorProto(name="schema.proto", syntax="proto3")
    _fill(file.message_type.add(name=_MESSAGE), columns, file, f".{_MESSAGE}")
    return file


def protobuf_text(file: FileDescriptorProto) -> Schema:
    return Schema(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")


def _fill(message: DescriptorProto, columns: StructType, file: FileDescriptorProto, path: str) -> None:
    for number, column in enumerate(columns.fields, 1):
        field = message.field.add(name=column.name, number=number)
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        kind = column.dataType
        if isinstance(kind, ArrayType | MapType):
            field.label = FieldDescriptorProto.LABEL_REPEATED
        if isinstance(kind, MapType):
            entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
            _nest(message, field, entry, file, path).options.map_entry = True
            continue
        element = kind.elementType if isinstance(kind, ArrayType) else kind
        _set_type(message, field, element, file, path)
        if field.type != FieldDescriptorProto.TYPE_MESSAGE and not isinstance(kind, ArrayType):
            if message.name.endswith("Entry") and path.endswith("Entry"):
                continue
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{column.name}")


def _set_type(
    message: DescriptorProto,
    field: FieldDescriptorProto,
    kind: DataType,
    file: FileDescriptorProto,
    path: str,
) -> None:
    if isinstance(kind, StructType):
        _nest(message, field, kind, file, path)
    elif isinstance(kind, TimestampType):
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, ".google.protobuf.Timestamp"
        if "google/protobuf/timestamp.proto" not in file.dependency:
            file.dependency.append("google/protobuf/timestamp.proto")
    else:
        found = next((number for spark, number in _PROTOBUF if isinstance(kind, spark)), None)
        if found is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The format PROTOBUF has no {kind.simpleString()} ({field.name}); cast it, or use AVRO",
            )
        field.type = found  # type: ignore[assignment]


def _nest(
    message: DescriptorProto,
    field: FieldDescriptorProto,
    columns: StructType,
    file: FileDescriptorProto,
    path: str,
) -> DescriptorProto:
    """Add a message type for a field, named as `protoc` names the entries of a map."""
    words = field.name.split("_")
    name = "".join(word[:1].upper() + word[1:] for word in words) + "Entry"
    nested = message.nested_type.add(name=name)
    field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f"{path}.{name}"
    _fill(nested, columns, file, f"{path}.{name}")
    return nested
