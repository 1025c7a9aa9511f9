"""The columns of a registered schema, as ksqlDB infers them, in Spark's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    StructField,
    StructType,
    TimestampType,
    TimeType,
)

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.types import Schema

#: The column of a key or value that is not a record.
_CONNECT_TITLES: dict[str, DataType] = {
    "org.apache.kafka.connect.data.Timestamp": TimestampType(),
    "org.apache.kafka.connect.data.Date": DateType(),
    "org.apache.kafka.connect.data.Time": TimeType(),
}
_JSON: dict[str, DataType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
_CONNECT_TYPES: dict[str, DataType] = {
    "int8": IntegerType(),
    "int16": IntegerType(),
    "int32": IntegerType(),
    "bytes": BinaryType(),
}
#: Types that refer to themselves end here.
_MAX_DEPTH = 20


def registered_columns(client: RegistryClient, schema: Schema, single: str) -> StructType:
    """Return the columns of a schema; one that is not a record is the column `single`."""
    references = client.referenced_texts(schema)
    match schema.schema_type:
        case "AVRO":
            found = _avro_columns(schema.text, references)
        case "JSON":
            found = _json_columns(schema.text, references)
        case _:
            found = _protobuf_columns(schema.text, references)
    return found if isinstance(found, StructType) else StructType([StructField(single, found)])


def _too_deep() -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG,
        "The schema refers to itself; declare the columns, for example without that field",
    )


def _avro_columns(text: str, references: Mapping[str, str]) -> DataType:
    from moldau.client.registry.codecs.avro import AvroCodec
    from moldau.pipelines.formats.avro import spark_type

    codec = AvroCodec(text, references)
    try:
        return spark_type(codec.schema, codec.named)
    except RecursionError as error:
        raise _too_deep() from error


def _json_columns(text: str, references: Mapping[str, str]) -> DataType:
    from moldau.client.registry.codecs.json_schema import JsonSchemaCodec

    codec = JsonSchemaCodec(text, references)
    return _json_type(codec.schema, codec.registry.resolver_with_root(_root(codec.schema)), 0)


def _root(schema: Any) -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012.create_resource(schema)


def _json_type(schema: Any, resolver: Any, depth: int) -> DataType:
    if depth > _MAX_DEPTH:
        raise _too_deep()
    if not isinstance(schema, dict):
        return StringType()
    if "$ref" in schema:
        found = resolver.lookup(schema["$ref"])
        return _json_type(found.contents, found.resolver, depth + 1)
    for choices in ("oneOf", "anyOf"):
        other = [one for one in schema.get(choices, ()) if one.get("type") != "null"]
        if other:
            return _json_type(other[0], resolver, depth + 1)
    if schema.get("title") in _CONNECT_TITLES:
        return _CONNECT_TITLES[schema["title"]]
    if schema.get("title") == "org.apache.kafka.connect.data.Decimal":
        parameters = schema.get("connect.parameters") or {}
        precision = int(parameters.get("connect.decimal.precision", 38))
        return DecimalType(precision, int(parameters.get("scale", 0)))
    if schema.get("connect.type") in _CONNECT_TYPES:
        return _CONNECT_TYPES[schema["connect.type"]]
    return _json_container(schema, resolver, depth)


def _json_container(schema: Any, resolver: Any, depth: int) -> DataType:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if kind == "array":
        return ArrayType(_json_type(schema.get("items") or {}, resolver, depth + 1))
    if kind == "object" or "properties" in schema:
        if not schema.get("properties"):
            values = schema.get("additionalProperties")
            return MapType(StringType(), _json_type(values, resolver, depth + 1))
        properties = sorted(schema["properties"].items(), key=lambda item: _index(item[1]))
        return StructType([StructField(n, _json_type(one, resolver, depth + 1)) for n, one in properties])
    return _JSON.get(str(kind), StringType())


def _index(schema: Any) -> int:
    """Return the position that Kafka Connect wrote; properties of an object have no order of their own."""
    return int(schema.get("connect.index", 0)) if isinstance(schema, dict) else 0


def _protobuf_columns(text: str, references: Mapping[str, str]) -> DataType:
    from moldau.client.registry.codecs.protobuf import ProtobufCodec

    return message_columns(ProtobufCodec(text, references).descriptor((0,)), 0)


def message_columns(descriptor: Any, depth: int) -> StructType:
    if depth > _MAX_DEPTH:
        raise _too_deep()
    return StructType([StructField(one.name, _field_type(one, depth)) for one in descriptor.fields])


def _field_type(field: Any, depth: int) -> DataType:
    from moldau.client.registry.rules.messages import is_map, is_repeated

    if is_map(field):
        return MapType(StringType(), _field_type(field.message_type.fields_by_name["value"], depth + 1))
    kind = _single_type(field, depth)
    return ArrayType(kind) if is_repeated(field) else kind


def _single_type(field: Any, depth: int) -> DataType:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return TimestampType()
        return message_columns(field.message_type, depth + 1)
    if field.type == field.TYPE_BYTES:
        return BinaryType()
    numbers = {
        field.CPPTYPE_INT32: IntegerType(),
        field.CPPTYPE_UINT32: LongType(),
        field.CPPTYPE_INT64: LongType(),
        field.CPPTYPE_UINT64: LongType(),
        field.CPPTYPE_DOUBLE: DoubleType(),
        field.CPPTYPE_FLOAT: DoubleType(),
        field.CPPTYPE_BOOL: BooleanType(),
    }
    return numbers.get(field.cpp_type, StringType())
