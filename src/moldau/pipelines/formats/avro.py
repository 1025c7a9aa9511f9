"""The format AVRO: with a given schema, or one derived from the columns as ksqlDB does.

Values are plain Avro binary data, as `moldau.client` writes them. The five bytes that a schema registry puts
in front (a zero and the schema id) are skipped.

The given schema is the writer's schema. Columns are matched by name, so there may be fewer or more of them,
and of wider types. Bytes of another schema, and values that do not fit a column, are errors of single
records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
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
from moldau.client.schema_serdes import AvroDeserializer, AvroSerializer
from moldau.client.serdes import SerializationError
from moldau.pipelines.formats.serialization import Decoded

_FRAME = 5
#: Errors of Arrow about a value that does not fit its column.
_MISFITS = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)
_SIMPLE: list[tuple[type[DataType], Any]] = [
    (BooleanType, "boolean"),
    (IntegerType, "int"),
    (LongType, "long"),
    (DoubleType, "double"),
    (StringType, "string"),
    (BinaryType, "bytes"),
    (TimestampType, {"type": "long", "logicalType": "timestamp-millis"}),
    (DateType, {"type": "int", "logicalType": "date"}),
    (TimeType, {"type": "int", "logicalType": "time-millis"}),
]
_FROM_AVRO: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": DoubleType(),
    "double": DoubleType(),
    "string": StringType(),
    "enum": StringType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "date": DateType(),
    "time-millis": TimeType(),
}


def given_schema(options: Mapping[str, str]) -> Any:
    """Return the Avro schema in the options, or None."""
    text = options.get("avro_schema")
    if text is None and (path := options.get("avro_schema_file")) is not None:
        try:
            text = Path(path).read_text()
        except OSError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"The Avro schema cannot be read: {error}") from error
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"The Avro schema is not JSON: {error}") from error


class AvroFormat:
    def __init__(self, schema: Any = None) -> None:
        self._schema = schema

    def decode(self, data: Column, schema: StructType) -> Decoded:
        read = _reader(self._schema or avro_schema(schema), schema)(data)
        return Decoded(read["value"], read["error"])

    def encode(self, row: Column, schema: StructType) -> Column:
        return F.when(row.isNotNull(), _writer(self._schema or avro_schema(schema))(row))


def _reader(avro: Any, schema: StructType):  # type: ignore[no-untyped-def]
    result = StructType([StructField("value", schema), StructField("error", StringType())])
    arrow = to_arrow_type(result, timezone="UTC")

    def read(data: pa.Array) -> pa.Array:
        decoder = AvroDeserializer(avro)
        return fitting_array([_read_one(decoder, one) for one in data.to_pylist()], arrow)

    read.__annotations__ = {"data": pa.Array, "return": pa.Array}
    return arrow_udf(read, result)  # type: ignore[call-overload]


def _read_one(decoder: AvroDeserializer, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {"value": None, "error": None}
    try:
        if len(data) > _FRAME and data[0] == 0:
            try:
                return {"value": decoder.deserialize("", data[_FRAME:]), "error": None}
            except SerializationError:
                # A record without the bytes of a registry may also begin with a zero.
                return {"value": decoder.deserialize("", data), "error": None}
        return {"value": decoder.deserialize("", data), "error": None}
    except SerializationError as error:
        return {"value": None, "error": str(error).removeprefix(": ").removesuffix(": ")}


def fitting_array(rows: list[dict[str, Any]], arrow: pa.DataType) -> pa.Array:
    """Return rows of a value and an error; a value that does not fit its columns becomes an error."""
    try:
        return pa.array(rows, arrow)
    except _MISFITS:
        return pa.array([_fitting(row, arrow) for row in rows], arrow)


def _fitting(row: dict[str, Any], arrow: pa.DataType) -> dict[str, Any]:
    """Return the row, or an error if it does not fit its columns."""
    try:
        pa.array([row], arrow)
    except _MISFITS as error:
        return {"value": None, "error": f"does not fit the columns: {error}"}
    return row


def _writer(avro: Any):  # type: ignore[no-untyped-def]
    def write(rows: pa.Array) -> pa.Array:
        encoder = AvroSerializer(avro)
        return pa.array(
            [encoder.serialize("", one) for one in rows.to_pylist(maps_as_pydicts="strict")], pa.binary()
        )

    write.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    return arrow_udf(write, "binary")  # type: ignore[call-overload]


def avro_schema(schema: StructType, name: str = "KsqlDataSourceSchema") -> dict[str, Any]:
    """Return the schema that ksqlDB derives from columns: every field is nullable."""
    fields = [
        {
            "name": field.name,
            "type": ["null", avro_type(field.dataType, f"{name}_{field.name}")],
            "default": None,
        }
        for field in schema.fields
    ]
    return {"type": "record", "name": name, "namespace": "io.confluent.ksql.avro_schemas", "fields": fields}


def avro_type(kind: DataType, name: str) -> Any:
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": ["null", avro_type(kind.elementType, name)]}
    if isinstance(kind, MapType):
        return {"type": "map", "values": ["null", avro_type(kind.valueType, name)]}
    if isinstance(kind, StructType):
        return avro_schema(kind, name)
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return next(avro for spark, avro in _SIMPLE if isinstance(kind, spark))


def columns_of(avro: Any) -> StructType:
    """Return the columns of a schema."""
    found = spark_type(avro)
    if not isinstance(found, StructType):
        raise KafkaError(ErrorCode.INVALID_CONFIG, "The Avro schema of a stream is a record")
    return found


def spark_type(avro: Any, named: Mapping[str, Any] | None = None) -> DataType:
    """Return the type of a schema; `named` has the types that it refers to by name."""
    named = named or {}
    if isinstance(avro, list):
        return spark_type(next((one for one in avro if one != "null"), "string"), named)
    if isinstance(avro, str):
        if avro in named:
            return spark_type(named[avro], named)
        return _FROM_AVRO.get(avro, StringType())
    logical = avro.get("logicalType")
    if logical == "decimal":
        return DecimalType(avro["precision"], avro.get("scale", 0))
    if logical in _FROM_AVRO:
        return _FROM_AVRO[logical]
    match avro["type"]:
        case "record" | "error":
            fields = [StructField(one["name"], spark_type(one["type"], named)) for one in avro["fields"]]
            return StructType(fields)
        case "array":
            return ArrayType(spark_type(avro["items"], named))
        case "map":
            return MapType(StringType(), spark_type(avro["values"], named))
        case other:
            return spark_type(other, named)
