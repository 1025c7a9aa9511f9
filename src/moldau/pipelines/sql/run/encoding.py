"""Results as records of topics: the bytes of keys and values, and the bounds of windows behind the keys."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import KEEP, RESULT_TIME, WINDOW_END, WINDOW_START
from moldau.pipelines.sql.run.decoding import key_format, key_schema, value_format, value_schema


def as_records(result: DataFrame, source: Source, names: Mapping[str, str]) -> DataFrame:
    """A result as records of a source's topic. `names`: the column of the source -> that of the result."""
    value = F.struct(
        *(F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.value_columns)
    )
    if KEEP in result.columns:
        value = F.when(F.col(KEEP), value)
    if WINDOW_START in result.columns:
        # Kafka has no windows that begin before the epoch.
        result = result.where(F.col(WINDOW_START) >= 0)
    columns = [value_format(source).encode(value, value_schema(source)).alias("value")]
    columns.append(_key(source, names).alias("key"))
    if RESULT_TIME in result.columns:
        columns.append(F.col(RESULT_TIME).alias("timestamp"))
    return result.select(*columns)


def _key(source: Source, names: Mapping[str, str]) -> Column:
    if not source.key_columns:
        return F.lit(None).cast("binary")
    key = encoded_key(source, names)
    if source.window is None:
        return key
    bounds = [WINDOW_END, WINDOW_START] if source.window.kind == "SESSION" else [WINDOW_START]
    written = [F.unhex(F.lpad(F.hex(F.col(bound)), 16, "0")) for bound in bounds]
    return F.concat(key, *written)


def encoded_key(source: Source, names: Mapping[str, str]) -> Column:
    """The key without the bounds of a window."""
    parts = [F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.key_columns]
    return key_format(source).encode(F.struct(*parts), key_schema(source))
