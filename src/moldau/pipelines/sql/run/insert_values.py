"""Executes INSERT INTO … VALUES."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from moldau.pipelines.queries import source_format
from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.functions import rewritten
from moldau.pipelines.sql.compile.plan import RESULT_TIME
from moldau.pipelines.sql.errors import SqlError, suggestion
from moldau.pipelines.sql.parse.dialect import place_of, quoted, spark_sql
from moldau.pipelines.sql.parse.statements import InsertValues
from moldau.pipelines.sql.results import Message, Result
from moldau.pipelines.sql.run.context import Context, spark_errors
from moldau.pipelines.sql.run.records import as_records
from moldau.pipelines.sql.types import NUMBERS, SqlType, fits, from_spark

_GIVEN_AS_TEXT = ("TIMESTAMP", "DATE", "TIME", "BYTES")


def insert_values(context: Context, statement: InsertValues) -> Result:
    sink = context.catalog.find(statement.name)
    names = _names(statement, sink)
    frames = []
    for row in statement.rows:
        if len(row) != len(names):
            raise SqlError(
                f"{len(names)} columns, but {len(row)} values",
                place_of(row[0]) or statement.name.place,
                f"The columns are {', '.join(names)}.",
            )
        frames.append(_row(context, statement, sink, dict(zip(names, row, strict=True))))
    records = frames[0]
    for frame in frames[1:]:
        records = records.unionByName(frame)
    options = {"kafka.bootstrap.servers": context.bootstrap_servers, **context.frames.client_options}
    options["topic"] = sink.topic
    # One task keeps the order of the statement's records.
    records.coalesce(1).write.format(source_format(context.spark)).mode("append").options(**options).save()
    count = len(statement.rows)
    return Message(f"{count} {'record' if count == 1 else 'records'} written to {sink.name}.")


def _names(statement: InsertValues, sink: Source) -> list[str]:
    """Return the columns of the values, in the spelling of the sink."""
    writable = [column.name for column in sink.columns if column.role != "HEADERS"]
    if not statement.columns:
        return writable
    found = []
    for named in statement.columns:
        name = next((one for one in (*writable, "ROWTIME") if one.upper() == named.name.upper()), None)
        if name is None:
            hint = suggestion(named.name, writable) or f"The columns are {', '.join(writable)}."
            raise SqlError(f"Unknown column {named.name} of {sink.name}", named.place, hint)
        found.append(name)
    missing = [column.name for column in sink.key_columns if column.name not in found]
    if sink.is_table and missing:
        raise SqlError(f"The key of {sink.name} is missing: {', '.join(missing)}", statement.name.place)
    return found


def _row(
    context: Context, statement: InsertValues, sink: Source, values: dict[str, exp.Expression]
) -> DataFrame:
    selected = [f"{spark_sql(rewritten(value))} AS {quoted(name)}" for name, value in values.items()]
    with spark_errors(statement.name.place):
        frame = context.spark.sql(f"SELECT {', '.join(selected)}")
    types = {field.name: field.dataType.jsonValue() for field in frame.schema.fields}
    for column in sink.columns:
        if column.name not in values:
            frame = frame.withColumn(column.name, F.lit(None).cast(column.type.ddl()))
        elif types[column.name] != "void" and not _storable(from_spark(types[column.name]), column.type):
            raise SqlError(
                f"Column {column.name} has type {column.type}, but the value "
                f"{spark_sql(values[column.name])} has type {from_spark(types[column.name])}",
                place_of(values[column.name]) or statement.name.place,
                f"Write CAST(… AS {column.type}), or another value.",
            )
    time = F.timestamp_millis(F.col("ROWTIME")) if "ROWTIME" in values else F.current_timestamp()
    frame = frame.withColumn(RESULT_TIME, time)
    return as_records(frame, sink, {column.name: column.name for column in sink.columns})


def _storable(given: SqlType, wanted: SqlType) -> bool:
    """Whether a literal can be stored: as `fits`, but also 1.5 as a DOUBLE, and text as a date."""
    if given.kind in NUMBERS and wanted.kind in ("DECIMAL", "DOUBLE"):
        return True
    if given.kind == "INTEGER" and wanted.kind == "BIGINT":
        return True
    if given.kind == "VARCHAR" and wanted.kind in _GIVEN_AS_TEXT:
        return True
    if given.kind == wanted.kind and given.of:
        return all(_storable(mine, theirs) for mine, theirs in zip(given.of, wanted.of, strict=False))
    return fits(given, wanted)
