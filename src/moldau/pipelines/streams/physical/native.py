"""Native steps: filters and mappers given as Spark expressions.

Expressions can reference the deserialized `key` and `value` (`value.amount` for JSON with a schema),
`timestamp`, `headers`, `topic`, `partition` and `offset`. The type of an expression determines the serde of
its result: structs, arrays and maps are JSON, strings are text, integers are big-endian.
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
    """A frame with the standard columns, and its serdes."""

    frame: DataFrame
    key_serde: Serde
    value_serde: Serde
    #: Whether there is a column `target`, the topic to which the operator has addressed a row.
    side_outputs: bool = False


def expression(given: Any) -> Column:
    return F.expr(given) if isinstance(given, str) else given


def decoded(column: Column, serde: Serde, what: str) -> Column:
    """Deserialize a column for use in expressions."""
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
            # A record that does not match the schema fails the query instead of becoming null.
            return F.from_json(column.cast("string"), serde.schema, {"mode": "FAILFAST"})
    hint = "pass a schema: Serdes.json(schema=…)" if serde.format == "json" else "use a Python function"
    raise TopologyException(f"Spark cannot deserialize {what} natively: {hint}")


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
    raise TopologyException(
        f"Spark cannot serialize {what} natively: use the serde bytes, string, int, long or json"
    )


def serde_of(data_type: DataType, what: str) -> Serde:
    """Return the serde of an expression's result."""
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
        f"{what} returns {data_type.simpleString()}, for which there is no serde: "
        "cast it to a struct, a string or a bigint"
    )


def with_decoded(rows: NativeRows, name: str) -> DataFrame:
    """Deserialize key and value, and keep their bytes in additional columns."""
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
    """Apply a timestamp extractor given as an expression, which returns a timestamp or milliseconds."""
    work = with_decoded(rows, name)
    when = expression(extractor)
    if isinstance(work.select(when).schema[0].dataType, LongType | IntegerType):
        when = F.timestamp_millis(when)
    return replace(rows, frame=_restored(work.withColumn("timestamp", when), rows.frame.columns))


def _restored(work: DataFrame, columns: list[str]) -> DataFrame:
    raw = {"key": RAW_KEY, "value": RAW_VALUE}
    return work.select(*(F.col(raw.get(name, name)).alias(name) for name in columns))
