"""Serialization formats of keys and values, by ksqlDB's names.

A format decodes a binary column into a struct of a given schema, and reports records that cannot be decoded
in a second column; it never fails a query. It encodes a struct into a binary column. Null (a tombstone)
decodes to a null struct without an error, and a null struct encodes to null.

    value = format_named("JSON").decode(frame["value"], schema)
    frame.select(value.struct.alias("value"), value.error.alias("error"))

Except for AVRO, PROTOBUF, and DOUBLE in KAFKA, Spark itself decodes and encodes, without Python. `temporal`
has the representation of times and dates in text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.formats.temporal import from_wire, has_times, to_wire, unreadable, wire_type

FORMATS = ("JSON", "KAFKA", "DELIMITED", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR", "BYTES", "NONE")
_CORRUPT = "__corrupt"
_DELIMITERS = {"TAB": "\t", "SPACE": " "}


@dataclass(frozen=True, slots=True)
class Decoded:
    struct: Column
    #: The decoding error; null if there is none.
    error: Column


class Format(Protocol):
    def decode(self, data: Column, schema: StructType) -> Decoded: ...

    def encode(self, row: Column, schema: StructType) -> Column: ...


def format_named(
    name: str, options: Mapping[str, str] | None = None, *, topic: str | None = None, key: bool = False
) -> Format:
    """Return a format by ksqlDB's name. Options: `delimiter`, `avro_schema` (JSON text), `avro_schema_file`,
    `wrap_single_value` ("false" if the only column is the whole value), and those of `registry_options`.

    With a registry, records in AVRO name a schema of it; the topic names its subject.
    """
    options = options or {}
    match name.upper().replace("-", "_"):
        case "JSON":
            return JsonFormat(wrapped=options.get("wrap_single_value", "true").lower() != "false")
        case "KAFKA" | "STRING":
            return KafkaFormat()
        case "DELIMITED" | "CSV":
            given = options.get("delimiter", ",")
            return DelimitedFormat(_DELIMITERS.get(given.upper(), given))
        case "BYTES":
            return KafkaFormat()
        case "NONE":
            return NoFormat()
        case "AVRO" | "JSON_SR" | "JSON_SCHEMA" | "PROTOBUF" | "PROTOBUF_NOSR" as known:
            return _schema_format(known, options, topic, key)
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown format {name}; use one of {', '.join(FORMATS)}")


def _schema_format(name: str, options: Mapping[str, str], topic: str | None, key: bool) -> Format:
    """Return a format with schemas, which needs more libraries."""
    from moldau.pipelines.formats.registry.options import registry_options

    registry = registry_options(options, topic, key=key)
    if name == "AVRO" and registry is None:
        from moldau.pipelines.formats.avro import AvroFormat, given_schema

        return AvroFormat(given_schema(options))
    from moldau.pipelines.formats.registry.format import (
        AvroRegistryFormat,
        JsonRegistryFormat,
        ProtobufFormat,
    )

    if name == "PROTOBUF_NOSR":
        return ProtobufFormat(None)
    if registry is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"The format {name} needs a schema registry: set schema.registry.url"
        )
    if name == "PROTOBUF":
        return ProtobufFormat(registry)
    return AvroRegistryFormat(registry) if name == "AVRO" else JsonRegistryFormat(registry)


class JsonFormat:
    """An object with a field for each column, with the spelling of the column."""

    def __init__(self, *, wrapped: bool = True) -> None:
        self._wrapped = wrapped

    def decode(self, data: Column, schema: StructType) -> Decoded:
        text = data.cast("string")
        wire = _wire_schema(schema)
        if not self._wrapped:
            text = F.concat(F.lit(f"{{{_in_json(schema.fields[0].name)}:"), text, F.lit("}"))
        parsed = F.from_json(text, wire, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})
        corrupt = parsed[_CORRUPT].isNotNull() | (parsed.isNull() & data.isNotNull())
        return _text_columns(data, parsed, schema, corrupt, "invalid JSON for the schema")

    def encode(self, row: Column, schema: StructType) -> Column:
        fields = [to_wire(row[field.name], field.dataType).alias(field.name) for field in schema.fields]
        text = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
        if not self._wrapped:
            # Strip {"name": and } around the value.
            before = len(_in_json(schema.fields[0].name)) + 2
            text = F.substr(text, F.lit(before + 1), F.length(text) - F.lit(before + 1))
        return F.when(row.isNotNull(), text.cast("binary"))


def _in_json(name: str) -> str:
    """Return a name as Spark writes it in JSON."""
    return json.dumps(name, ensure_ascii=False)


class DelimitedFormat:
    """Values separated by a delimiter, as in CSV files."""

    def __init__(self, delimiter: str = ",") -> None:
        self._options = {"sep": delimiter, "columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}

    def decode(self, data: Column, schema: StructType) -> Decoded:
        parsed = F.from_csv(data.cast("string"), _ddl(_wire_schema(schema)), self._options)
        corrupt = parsed[_CORRUPT].isNotNull()
        if len(schema.fields) > 1:
            # Spark reads empty text as a row of empty columns.
            corrupt |= F.length(data) == 0
        return _text_columns(data, parsed, schema, corrupt, "invalid delimited text for the schema")

    def encode(self, row: Column, schema: StructType) -> Column:
        fields = [to_wire(row[field.name], field.dataType).alias(field.name) for field in schema.fields]
        text = F.to_csv(F.struct(*fields), {"sep": self._options["sep"]})
        return F.when(row.isNotNull(), text.cast("binary"))


class KafkaFormat:
    """One column as Kafka's Java serializers write it: text, big-endian numbers, bytes."""

    def decode(self, data: Column, schema: StructType) -> Decoded:
        field = self._only(schema)
        value, good = _from_bytes(data, field.dataType)
        message = f"not {field.dataType.simpleString()} as Kafka's serializers write it"
        return _decoded(data, F.struct(value.alias(field.name)), ~good, message)

    def encode(self, row: Column, schema: StructType) -> Column:
        field = self._only(schema)
        return _to_bytes(row[field.name], field.dataType)

    @staticmethod
    def _only(schema: StructType) -> StructField:
        fields: list[StructField] = schema.fields
        if len(fields) != 1:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The format KAFKA holds one column, not {len(fields)}; use JSON, for example",
            )
        if not isinstance(fields[0].dataType, StringType | BinaryType | IntegerType | LongType | DoubleType):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The format KAFKA holds text, numbers and bytes, but {fields[0].name} is "
                f"{fields[0].dataType.simpleString()}; use JSON, for example",
            )
        return fields[0]


class NoFormat:
    """No data: the keys of a stream without keys."""

    def decode(self, data: Column, schema: StructType) -> Decoded:
        return Decoded(F.lit(None).cast(schema), F.lit(None).cast("string"))

    def encode(self, row: Column, schema: StructType) -> Column:
        return F.lit(None).cast("binary")


def _text_columns(data: Column, parsed: Column, schema: StructType, corrupt: Column, message: str) -> Decoded:
    """Return the columns that Spark parsed from text, with times and dates converted."""
    columns = [from_wire(parsed[field.name], field.dataType).alias(field.name) for field in schema.fields]
    errors = [F.when(F.coalesce(corrupt, F.lit(False)), F.lit(message))]
    errors += [
        F.when(
            unreadable(parsed[field.name], field.dataType),
            F.lit(f"{message}: invalid time in column {field.name}"),
        )
        for field in schema.fields
        if has_times(field.dataType)
    ]
    error = F.when(data.isNotNull(), F.coalesce(*errors))
    return Decoded(F.when(data.isNotNull() & error.isNull(), F.struct(*columns)), error)


def _decoded(data: Column, row: Column, bad: Column, message: str) -> Decoded:
    return Decoded(
        F.when(data.isNotNull() & ~F.coalesce(bad, F.lit(False)), row),
        F.when(data.isNotNull() & F.coalesce(bad, F.lit(False)), F.lit(message)),
    )


def _from_bytes(data: Column, kind: DataType) -> tuple[Column, Column]:
    """Return the value, and whether the bytes are valid."""
    if isinstance(kind, BinaryType):
        return data, F.lit(True)
    if isinstance(kind, StringType):
        text = data.cast("string")
        return text, F.is_valid_utf8(text)
    digits = F.hex(data)
    if isinstance(kind, IntegerType):
        # Sign-extend four bytes to the eight that `conv` expects.
        extended = F.when(digits >= "80000000", F.concat(F.lit("FFFFFFFF"), digits)).otherwise(digits)
        return F.conv(extended, 16, -10).try_cast("int"), F.length(data) == 4
    if isinstance(kind, LongType):
        return F.conv(digits, 16, -10).try_cast("bigint"), F.length(data) == 8
    read = arrow_udf(_unpack_doubles, "double")  # type: ignore[call-overload]
    return read(data), F.length(data) == 8


def _to_bytes(value: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return value
    if isinstance(kind, StringType):
        return value.cast("binary")
    if isinstance(kind, DoubleType):
        written: Column = arrow_udf(_pack_doubles, "binary")(value)  # type: ignore[call-overload]
        return written
    digits = F.lpad(F.hex(value.cast("bigint")), 16, "0")
    return F.unhex(F.substr(digits, F.lit(9)) if isinstance(kind, IntegerType) else digits)


def _unpack_doubles(data: pa.Array) -> pa.Array:
    return pa.array(
        [struct.unpack(">d", one)[0] if one and len(one) == 8 else None for one in data.to_pylist()],
        pa.float64(),
    )


def _pack_doubles(values: pa.Array) -> pa.Array:
    return pa.array(
        [None if one is None else struct.pack(">d", one) for one in values.to_pylist()], pa.binary()
    )


def _wire_schema(schema: StructType) -> StructType:
    fields = [StructField(field.name, wire_type(field.dataType)) for field in schema.fields]
    return StructType([*fields, StructField(_CORRUPT, StringType())])


def _ddl(schema: StructType) -> str:
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
