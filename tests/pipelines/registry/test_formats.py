"""Columns ↔ records that name a schema of a registry, in Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.registry import JsonSchemaDeserializer, ProtobufDeserializer
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.types import Schema as RegistrySchema
from moldau.pipelines.formats.registry.columns import registered_columns
from moldau.pipelines.formats.registry.headers import with_frame
from moldau.pipelines.formats.registry.options import RegistryOptions, registry_options
from moldau.pipelines.formats.serialization import format_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = (
    "named_struct('id', -5, 'name', 'a,\"b', 'big', 5000000000L, 'x', 1.5D, 'yes', true, "
    "'ts', timestamp'2020-01-01 10:00:00', 'b', cast('xy' as binary), "
    "'arr', array('p', 'q'), 's', named_struct('x', 1, 'w', 'in'), 'm', map('k', 1.5D), 'none', "
    "cast(null as string))"
)
DDL = (
    "id INT, name STRING, big BIGINT, x DOUBLE, yes BOOLEAN, ts TIMESTAMP, b BINARY, arr ARRAY<STRING>, "
    "s STRUCT<x: INT, w: STRING>, m MAP<STRING, DOUBLE>, none STRING"
)
#: Types that Protobuf does not have.
MORE = ", named_struct('d', date'2020-01-02', 't', time'10:11:12', 'p', cast(1.5 as decimal(6,2))) AS more"
MORE_DDL = "d DATE, t TIME, p DECIMAL(6,2)"


def frame_of(client: SchemaRegistryClient, subject: str, text: str, kind: str = "AVRO") -> bytes:
    return b"\0" + client.register_schema(subject, Schema(text, kind)).to_bytes(4, "big")


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.fixture
def with_times(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_every_type_is_read_as_it_was_written(with_times: SparkSession, registry_url: str, name: str) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema, topic = StructType.fromDDL(DDL), f"types-{name.lower()}"
    chosen = format_named(name, {"registry": registry_url}, topic=topic)
    frame = with_times.sql(f"SELECT {ROW} AS s UNION ALL SELECT null")
    written = frame.select(chosen.encode(F.col("s"), schema).alias("v"))
    read = chosen.decode(F.col("v"), schema)
    first, second = written.select("v", read.struct.alias("s"), read.error.alias("e")).collect()
    assert (second.v, second.s, second.e) == (None, None, None)
    assert first.e is None
    row = first.s
    assert (row.id, row.name, row.big, row.x, row.yes) == (-5, 'a,"b', 5_000_000_000, 1.5, True)
    assert (row.ts, bytes(row.b), row.arr) == (datetime(2020, 1, 1, 10), b"xy", ["p", "q"])
    assert (tuple(row.s), row.m, row.none) == ((1, "in"), {"k": 1.5}, None)
    # The columns of the registered schema are those that were written.
    options = registry_options({"registry": registry_url}, topic)
    assert isinstance(options, RegistryOptions)
    registered = options.schema()
    assert registered is not None
    found = registered_columns(options.client, registered.schema, "value")
    assert found.simpleString() == schema.simpleString()


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
def test_dates_times_and_decimals(with_times: SparkSession, registry_url: str, name: str) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema, topic = StructType.fromDDL(MORE_DDL), f"more-{name.lower()}"
    chosen = format_named(name, {"registry": registry_url}, topic=topic)
    written = with_times.sql(f"SELECT 1{MORE}").select(chosen.encode(F.col("more"), schema).alias("v"))
    (row,) = written.select(chosen.decode(F.col("v"), schema).struct.alias("s")).collect()
    assert tuple(row.s) == (date(2020, 1, 2), time(10, 11, 12), Decimal("1.50"))


def test_records_of_several_schemas_and_errors_of_single_records(
    spark: SparkSession, registry_url: str, confluent: SchemaRegistryClient
) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    old = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    new = {
        "type": "record",
        "name": "Order",
        "fields": [*old["fields"], {"name": "note", "type": ["null", "string"], "default": None}],
    }
    writers = [AvroSerializer(confluent, json.dumps(schema)) for schema in (old, new)]
    values = [
        writers[0]({"id": 1}, value_of("mixed")),
        writers[1]({"id": 2, "note": "n"}, value_of("mixed")),
        None,
        b"\0\x7f\xff\xff\xff\x02",
        b"plain",
        b"",
        (writers[0]({"id": 3}, value_of("mixed")) or b"") + b"more",
        writers[0]({"id": 4}, value_of("mixed")),
    ]
    chosen = format_named("AVRO", {"registry": registry_url}, topic="mixed")
    found = chosen.decode(F.col("v"), StructType.fromDDL("id BIGINT, note STRING"))
    frame = spark.createDataFrame([(one,) for one in values], "v binary").coalesce(1)
    rows = frame.select(found.struct.alias("s"), found.error.alias("e")).collect()
    assert [None if row.s is None else tuple(row.s) for row in rows] == [
        (1, None),
        (2, "n"),
        *[None] * 5,
        (4, None),
    ]
    errors = [row.e for row in rows]
    assert [error is None for error in errors] == [True, True, True, False, False, False, False, True]
    assert errors[3].startswith("unknown schema id 2147483647: ")
    assert "not framed by a schema registry's serializer" in errors[4]
    assert errors[6] == "unexpected bytes after the Avro data"


def test_other_clients_read_what_spark_writes(
    spark: SparkSession, registry_url: str, confluent: SchemaRegistryClient
) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL("id INT, name STRING")

    def written(name: str, topic: str) -> bytes:
        chosen = format_named(name, {"registry": registry_url}, topic=topic)
        frame = spark.sql("SELECT named_struct('id', 7, 'name', 'x') AS s")
        (row,) = frame.select(chosen.encode(F.col("s"), schema).alias("v")).collect()
        return bytes(row.v)

    avro: Any = AvroDeserializer(confluent)(written("AVRO", "to-avro"), value_of("to-avro"))
    assert avro == {"id": 7, "name": "x"}
    with RegistryClient(registry_url) as client:
        message = ProtobufDeserializer(client).deserialize("to-proto", written("PROTOBUF", "to-proto"))
        assert (message.id, message.name) == (7, "x")
        data = written("JSON_SR", "to-json")
        assert JsonSchemaDeserializer(client).deserialize("to-json", data) == {"id": 7, "name": "x"}


def test_nested_protobuf_message_of_another_writer(
    spark: SparkSession, registry_url: str, confluent: SchemaRegistryClient
) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    text = 'syntax = "proto3"; message A { int32 a = 1; } message B { message C { string name = 2; } }'
    data = frame_of(confluent, "nested-value", text, "PROTOBUF") + b"\x04\x02\x00" + b"\x12\x01x"
    chosen = format_named("PROTOBUF", {"registry": registry_url}, topic="nested")
    found = chosen.decode(F.col("v"), StructType.fromDDL("name STRING, other INT"))
    frame = spark.createDataFrame([(data,), (data[:5] + b"\x02\x10",)], "v binary")
    good, bad = frame.select(found.struct.alias("s"), found.error.alias("e")).collect()
    assert (tuple(good.s), good.e) == (("x", None), None)
    assert (bad.s, bad.e) == (None, "the schema has no message at [8]")


SCHEMAS = {
    "AVRO": ('{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}', b"", b"\x0e"),
    "JSON": ('{"type":"object","properties":{"id":{"type":"integer"}}}', b"", b'{"id":7}'),
    "PROTOBUF": ('syntax = "proto3"; message Order { int32 id = 1; }', b"\x00", b"\x08\x07"),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_named_by_guid_and_in_headers(spark: SparkSession, registry_url: str, kind: str) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    text, indexes, data = SCHEMAS[kind]
    with RegistryClient(registry_url) as client:
        registered = client.register(f"by-guid-{kind}", RegistrySchema(text, kind))
    guid = b"\x01" + UUID(registered.guid or "").bytes + indexes
    by_id = b"\x00" + registered.id.to_bytes(4, "big") + indexes
    rows = [
        (guid + data, None),
        (data, [("__value_schema_id", guid)]),
        (data, [("__key_schema_id", b"x"), ("__value_schema_id", None), ("__value_schema_id", by_id)]),
        (by_id + data, []),
        (None, [("__value_schema_id", guid)]),
        (data, [("__value_schema_id", b"\x01" + bytes(16) + indexes)] if kind != "JSON" else []),
    ]
    name = "JSON_SR" if kind == "JSON" else kind
    chosen = format_named(name, {"registry": registry_url}, topic=f"by-guid-{kind}")
    frame = spark.createDataFrame(
        rows, "v binary, headers array<struct<key: string, value: binary>>"
    ).coalesce(1)
    value = with_frame(F.col("v"), F.coalesce(F.col("headers"), F.array()), key=False)
    found = chosen.decode(value, StructType.fromDDL("id INT"))
    read = frame.select(found.struct.alias("s"), found.error.alias("e")).collect()
    assert [None if row.s is None else row.s.id for row in read] == [7, 7, 7, 7, None, None]
    assert [row.e is None for row in read] == [True] * 5 + [False]
    if kind != "JSON":
        assert f"unknown schema GUID {UUID(int=0)}" in read[5].e
