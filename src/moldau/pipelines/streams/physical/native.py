"""Steps that Spark computes itself: filters, keys and values given as expressions.

In an expression `key` and `value` are decoded (`value.amount` of JSON with a schema), beside `timestamp`,
`headers`, `topic`, `partition` and `offset`. What an expression gives is encoded by its type, unless the
serde is known: structs, arrays and maps as JSON, text as text, whole numbers big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from moldau.pipelines.streams.dsl.serdes import Serde, Serdes
from moldau.pipelines.streams.errors import TopologyException

RAW_KEY, RAW_VALUE = "__key", "__value"


@dataclass(frozen=True, slots=True)
class NativeRows:
    """A frame with the standard columns, and how its bytes are read."""

    frame: DataFrame
    key_serde: Serde
    value_serde: Serde
    #: There is a column `target`: rows that have one are on their way to that topic already.
    side_outputs: bool = False


def expression(given: Any) -> Column:
    return F.expr(given) if isinstance(given, str) else given


def decoded(column: Column, serde: Serde, what: str) -> Column:
    """Bytes as a column that expressions can use."""
    match serde.format:
        case "bytes":
            return column
        case "string":
            return column.cast("string")
        case "long":
            return F.conv(F.hex(column), 16, -10).cast("long")
        case "int":
            unsigned = F.conv(F.hex(column), 16, 10).cast("long")
            return F.shiftright(F.shiftleft(unsigned, 32), 32).cast("int")
        case "json" if serde.schema is not None:
            # A record that does not fit fails the query instead of being null.
            return F.from_json(column.cast("string"), serde.schema, {"mode": "FAILFAST"})
    hint = "give it a schema: Serdes.json(schema=…)" if serde.format == "json" else "use a Python function"
    raise TopologyException(f"Spark cannot read {what} by itself; {hint}")


def encoded(column: Column, serde: Serde, what: str) -> Column:
    match serde.format:
        case "bytes":
            return column
        case "string":
            return column.cast("string").cast("binary")
        case "long":
            return F.unhex(F.lpad(F.hex(column.cast("long")), 16, "0"))
        case "int":
            return F.unhex(F.right(F.lpad(F.hex(column.cast("long")), 16, "0"), F.lit(8)))
        case "json":
            return F.to_json(column).cast("binary")
    raise TopologyException(f"Spark cannot write {what} by itself: use bytes, string, int, long or JSON")


def serde_of(data_type: DataType, what: str) -> Serde:
    """How the result of an expression is written."""
    if isinstance(data_type, StructType | ArrayType | MapType):
        return Serdes.json(data_type)
    for known, serde in (
        (StringType, Serdes.string),
        (LongType, Serdes.long),
        (IntegerType, Serdes.integer),
        (BinaryType, Serdes.bytes),
    ):
        if isinstance(data_type, known):
            return serde()
    raise TopologyException(
        f"{what} gives {data_type.simpleString()}, which no serde fits: "
        "cast it to a struct, a string or a bigint"
    )


def with_decoded(rows: NativeRows, name: str) -> DataFrame:
    """Key and value decoded, their bytes kept beside."""
    return rows.frame.select(
        decoded(F.col("key"), rows.key_serde, f"the keys that {name} needs").alias("key"),
        decoded(F.col("value"), rows.value_serde, f"the values that {name} needs").alias("value"),
        *(each for each in rows.frame.columns if each not in ("key", "value")),
        F.col("key").alias(RAW_KEY),
        F.col("value").alias(RAW_VALUE),
    )


def filtered(rows: NativeRows, name: str, predicate: Any, negated: bool) -> NativeRows:
    holds = expression(predicate)
    kept = with_decoded(rows, name).filter(~holds if negated else holds)
    return replace(rows, frame=_restored(kept, rows.frame.columns))


def with_values(rows: NativeRows, name: str, mapper: Any) -> NativeRows:
    work = with_decoded(rows, name)
    serde = serde_of(work.select(expression(mapper)).schema[0].dataType, name)
    work = work.withColumn(RAW_VALUE, encoded(expression(mapper), serde, name))
    return replace(rows, frame=_restored(work, rows.frame.columns), value_serde=serde)


def with_keys(rows: NativeRows, name: str, mapper: Any) -> NativeRows:
    work = with_decoded(rows, name)
    serde = serde_of(work.select(expression(mapper)).schema[0].dataType, name)
    work = work.withColumn(RAW_KEY, encoded(expression(mapper), serde, name))
    return replace(rows, frame=_restored(work, rows.frame.columns), key_serde=serde)


def with_timestamps(rows: NativeRows, name: str, extractor: Any) -> NativeRows:
    """An extractor as an expression: a timestamp, or milliseconds."""
    work = with_decoded(rows, name)
    when = expression(extractor)
    if isinstance(work.select(when).schema[0].dataType, LongType | IntegerType):
        when = F.timestamp_millis(when)
    return replace(rows, frame=_restored(work.withColumn("timestamp", when), rows.frame.columns))


def _restored(work: DataFrame, columns: list[str]) -> DataFrame:
    raw = {"key": RAW_KEY, "value": RAW_VALUE}
    return work.select(*(F.col(raw.get(name, name)).alias(name) for name in columns))
