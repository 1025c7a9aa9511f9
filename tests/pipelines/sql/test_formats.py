"""Formats: values are read as they were written, and invalid values are errors of the record, not of the
query."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from moldau.base.errors import KafkaError
from moldau.pipelines.formats.serialization import FORMATS, format_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = (
    "named_struct('id', -5, 'name', 'a,\"b', 'ts', timestamp'2020-01-01 10:00:00', 'd', date'2020-01-02', "
    "'t', time'10:11:12', 'p', cast(1.5 as decimal(6,2)), 'b', cast('xy' as binary), "
    "'arr', array(timestamp'2020-01-01 10:00:00'), 's', named_struct('x', 1, 'w', date'2021-01-01'), "
    "'m', map('k', 1.5D))"
)
DDL = (
    "id INT, name STRING, ts TIMESTAMP, d DATE, t TIME, p DECIMAL(6,2), b BINARY, arr ARRAY<TIMESTAMP>, "
    "s STRUCT<x: INT, w: DATE>, m MAP<STRING, DOUBLE>"
)


@pytest.fixture
def with_times(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


def test_every_type_is_read_as_it_was_written(with_times: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(DDL)
    for name in ("JSON", "AVRO"):
        chosen = format_named(name)
        frame = with_times.sql(f"SELECT {ROW} AS s UNION ALL SELECT null")
        written = frame.select(chosen.encode(F.col("s"), schema).alias("v"))
        read = chosen.decode(F.col("v"), schema)
        first, second = written.select("v", read.struct.alias("s"), read.error.alias("e")).collect()
        assert (second.v, second.s, second.e) == (None, None, None)
        assert first.e is None
        row = first.s
        assert (row.id, row.name, row.ts, row.d) == (-5, 'a,"b', datetime(2020, 1, 1, 10), date(2020, 1, 2))
        assert (row.t, row.p, bytes(row.b)) == (time(10, 11, 12), Decimal("1.50"), b"xy")
        assert (row.arr, row.s.w, row.m) == ([datetime(2020, 1, 1, 10)], date(2021, 1, 1), {"k": 1.5})


def test_values_of_java_serializers_are_read_and_invalid_bytes_are_errors(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    def read(
        name: str, ddl: str, data: list[bytes | None], options: dict[str, str] | None = None
    ) -> list[Any]:
        chosen = format_named(name, options)
        found = chosen.decode(F.col("v"), StructType.fromDDL(ddl))
        frame = spark.createDataFrame([(one,) for one in data], "v binary")
        result = frame.select(found.struct.alias("s"), found.error.alias("e")).collect()
        return [None if row.s is None and row.e is None else (row.e or tuple(row.s)) for row in result]

    wrong = "not int as Kafka's serializers write it"
    assert read("KAFKA", "v INT", [b"\xff\xff\xff\xfb", b"\0\0\1\0", b"x", None]) == [
        (-5,),
        (256,),
        wrong,
        None,
    ]
    assert read("KAFKA", "v BIGINT", [b"\xff" * 8, b"\0" * 7 + b"\2"]) == [(-1,), (2,)]
    assert read("KAFKA", "v DOUBLE", [b"\xbf\xf8" + b"\0" * 6]) == [(-1.5,)]
    assert read("KAFKA", "v STRING", ["é".encode(), b"\xff"]) == [("é",), wrong.replace("int", "string")]
    lines = [b"1,x", b"y,x", b"1"]
    assert read("DELIMITED", "a INT, b STRING", lines) == [
        (1, "x"),
        *["invalid delimited text for the schema"] * 2,
    ]
    assert read("DELIMITED", "a INT, b STRING", [b"1\tx"], {"delimiter": "TAB"}) == [(1, "x")]
    bad = "invalid JSON for the schema"
    given = [b'{"a":1,"z":2}', b'{"a":"z"}', b"{", b"", b"[1]"]
    assert read("JSON", "a INT", given) == [(1,), bad, bad, bad, bad]
    assert read("JSON", "a STRING", [b'"x"', b"{"], {"wrap_single_value": "false"}) == [("x",), bad]


def test_unwrapped_json_value_with_any_column_name(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    json_format = format_named("JSON", {"wrap_single_value": "false"})
    for name in ("a", "größe", 'a"\\b'):
        schema = StructType([StructField(name, StringType())])
        frame = spark.createDataFrame([(("x",),)], StructType([StructField("row", schema)]))
        written = frame.select(json_format.encode(F.col("row"), schema).alias("data"))
        read = json_format.decode(F.col("data"), schema)
        (row,) = written.select("data", read.struct.alias("row"), read.error.alias("error")).collect()
        assert (bytes(row.data), tuple(row.row), row.error) == (b'"x"', ("x",), None)


def test_avro_with_a_schema_registry_prefix_is_read(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]
    text = json.dumps({"type": "record", "name": "r", "fields": fields})
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(text)), {"a": 0, "b": "x"})
    plain = buffer.getvalue()
    frame = spark.createDataFrame([(plain,), (b"\0\0\0\0\7" + plain,), (b"nonsense",)], "v binary")
    found = format_named("AVRO", {"avro_schema": text}).decode(
        F.col("v"), StructType.fromDDL("a INT, b STRING")
    )
    rows = frame.select(found.struct.alias("s"), found.error.alias("e")).collect()
    assert [row.s and tuple(row.s) for row in rows] == [(0, "x"), (0, "x"), None]
    assert "Avro" in rows[2].e


def test_unknown_format_and_invalid_schema_are_rejected() -> None:
    with pytest.raises(KafkaError, match=", ".join(FORMATS)):
        format_named("XML")
    with pytest.raises(KafkaError, match="cannot be read"):
        format_named("AVRO", {"avro_schema_file": "/nowhere"})
    with pytest.raises(KafkaError, match="not JSON"):
        format_named("AVRO", {"avro_schema": "{"})
