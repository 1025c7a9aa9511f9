"""Converts records to the rows of views, and results to records.

A view has the columns of its source, ROWTIME, ROWPARTITION and ROWOFFSET, and the internal columns `__time`
(the timestamp as a Spark timestamp), `__appended` (the record's own timestamp) and, for tables, `__deleted`.
Records that cannot be deserialized are not in the view; they are counted by the observed metric `decoding`,
and written to the dead letter topic if the source has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from moldau.pipelines.formats.registry.headers import is_framed, with_frame
from moldau.pipelines.formats.serialization import Format, format_named
from moldau.pipelines.sink.dead_letters import ERROR_TYPE, dead_letters, error
from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import DELETED, KEEP, RECORD, RESULT_TIME, WINDOW_END, WINDOW_START
from moldau.pipelines.sql.compile.scope import APPENDED, TIME
from moldau.pipelines.sql.parse.statements import ColumnDefinition, Window

#: The prefix of the observed metrics that count unreadable records.
DECODING = "decoding"
_BOUND_BYTES = 8


def key_schema(source: Source) -> StructType:
    return _schema(source.key_columns)


def value_schema(source: Source) -> StructType:
    return _schema(source.value_columns)


def _schema(columns: tuple[ColumnDefinition, ...]) -> StructType:
    ddl = ", ".join(f"`{one.name}` {one.type.ddl()}" for one in columns)
    schema = StructType.fromDDL(ddl) if ddl else StructType()
    if not isinstance(schema, StructType):
        raise TypeError(ddl)
    return schema


def key_format(source: Source) -> Format:
    # As in ksqlDB, a JSON key with a single column is not wrapped in an object.
    wrap = str(len(source.key_columns) > 1).lower()
    options = {**_registry(source), "wrap_single_value": wrap}
    return format_named(source.key_format, options, topic=source.topic, key=True)


def value_format(source: Source) -> Format:
    properties = source.properties
    options = {
        "delimiter": properties.get("value_delimiter", ","),
        "wrap_single_value": properties.get("wrap_single_value", "true"),
        **{name: properties[name] for name in ("avro_schema", "avro_schema_file") if name in properties},
        **_registry(source),
    }
    return format_named(source.value_format, options, topic=source.topic)


def _registry(source: Source) -> dict[str, str]:
    names = ("schema.registry.url", "value_schema_id", "key_schema_id")
    return {name: source.properties[name] for name in names if name in source.properties}


def decoded(records: DataFrame, source: Source) -> DataFrame:
    """Add the columns `__k` and `__v` (structs) and `__error` (see `dead_letters`) to records."""
    key = F.col("key")
    if source.window is not None:
        key = F.substring(key, F.lit(1), F.length(key) - F.lit(window_bytes(source.window)))
    data = _framed(F.col("value"), records, source, key=False)
    value = value_format(source).decode(data, value_schema(source))
    wrong = _wrong("VALUE_CONVERTER", source.value_format, value.error)
    if not source.key_columns:
        return records.select("*", value.struct.alias("__v"), wrong.alias("__error"))
    decoded_key = key_format(source).decode(_framed(key, records, source, key=True), key_schema(source))
    wrong = F.coalesce(_wrong("KEY_CONVERTER", source.key_format, decoded_key.error), wrong)
    return records.select(
        "*", decoded_key.struct.alias("__k"), value.struct.alias("__v"), wrong.alias("__error")
    )


def has_framed(source: Source) -> bool:
    """Return whether keys or values name schemas of a registry, perhaps in headers."""
    return any(is_framed(name, source.properties) for name in (source.key_format, source.value_format))


def _framed(data: Column, records: DataFrame, source: Source, *, key: bool) -> Column:
    name = source.key_format if key else source.value_format
    if "headers" not in records.columns or not is_framed(name, source.properties):
        return data
    return with_frame(data, F.col("headers"), key=key)


def _wrong(stage: str, format_name: str, message: Column) -> Column:
    there = message.isNotNull()
    return F.when(there, error(stage, f"format {format_name}", message)).otherwise(
        F.lit(None).cast(ERROR_TYPE)
    )


def window_bytes(window: Window) -> int:
    """Return the number of bytes that a windowed key has after the key."""
    return _BOUND_BYTES * (2 if window.kind == "SESSION" else 1)


def unreadable(records: DataFrame, source: Source, topic: str, query: str) -> DataFrame:
    """Return the records of a source that cannot be deserialized, as dead letters."""
    marked = decoded(records, source).select(F.struct(*records.columns).alias("__record"), "__error")
    return dead_letters(marked, record="__record", error="__error", pipeline=query, topic=topic)


def rows(
    records: DataFrame, source: Source, view: str, *, keep_deleted: bool, whole: bool = False
) -> DataFrame:
    """Return the rows of a source with the columns of its view; with `whole`, also with the record itself."""
    frame = decoded(records, source)
    frame = frame.observe(
        f"{DECODING}{view}",
        F.count_if(F.col("__error").isNotNull()).alias("failed"),
        F.max("__error.message").alias("reason"),
    )
    frame = frame.where("__error IS NULL")
    if not (source.is_table and keep_deleted):
        frame = frame.where("value IS NOT NULL")
    if source.is_table:
        frame = frame.where("key IS NOT NULL")
    record = [F.struct(*records.columns).alias(RECORD)] if whole else []
    return frame.select(*_view_columns(source), *record)


def _view_columns(source: Source) -> list[Column]:
    columns = [_column(column).alias(column.name) for column in source.columns]
    time = _time(source)
    columns += [
        F.unix_millis(time).alias("ROWTIME"),
        F.col("partition").alias("ROWPARTITION"),
        F.col("offset").alias("ROWOFFSET"),
        time.alias(TIME),
        F.col("timestamp").alias(APPENDED),
    ]
    if source.window is not None:
        columns += _bounds(source)
    if source.is_table:
        columns.append(F.col("value").isNull().alias(DELETED))
    return columns


def _column(column: ColumnDefinition) -> Column:
    if column.role == "HEADERS":
        if column.header is None:
            return F.col("headers")
        found = F.filter(F.col("headers"), lambda one: one["key"] == F.lit(column.header))
        return F.try_element_at(found, F.lit(-1))["value"]
    return F.col(f"__{column.role[0].lower()}")[column.name]


def _time(source: Source) -> Column:
    """Return the timestamp of a record: that of the column named by the source, or its own."""
    name = source.properties.get("timestamp")
    if name is None:
        return F.col("timestamp")
    column = next(one for one in source.columns if one.name.upper() == name.upper())
    value = _column(column)
    if (pattern := source.properties.get("timestamp_format")) is not None:
        value = F.try_to_timestamp(value, F.lit(pattern))
    elif column.type.kind == "BIGINT":
        value = F.timestamp_millis(value)
    elif column.type.kind == "VARCHAR":
        value = F.try_to_timestamp(value)
    return F.coalesce(value, F.col("timestamp"))


def _bounds(source: Source) -> list[Column]:
    """Return WINDOWSTART and WINDOWEND, from the end of the windowed key."""
    window = source.window
    if window is None:
        return []

    def number(from_end: int) -> Column:
        at = F.length("key") - F.lit(from_end - 1)
        return F.conv(F.hex(F.substring(F.col("key"), at, F.lit(_BOUND_BYTES))), 16, -10).cast("bigint")

    start = number(_BOUND_BYTES)
    end = number(2 * _BOUND_BYTES) if window.kind == "SESSION" else start + F.lit(window.size_ms)
    return [start.alias("WINDOWSTART"), end.alias("WINDOWEND")]


def as_records(result: DataFrame, source: Source, names: Mapping[str, str]) -> DataFrame:
    """Convert a result to records of a source's topic. `names` are the result's column names by those of the
    source."""
    value = F.struct(
        *(F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.value_columns)
    )
    if KEEP in result.columns:
        value = F.when(F.col(KEEP), value)
    if WINDOW_START in result.columns:
        # Kafka Streams has no windows that start before the epoch.
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
    """Return the key without window bounds."""
    parts = [F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.key_columns]
    return key_format(source).encode(F.struct(*parts), key_schema(source))
