"""The sink of a persistent query: its columns and formats are derived from the SELECT."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.statements import ColumnDefinition, CreateAs, Select
from moldau.pipelines.sql.properties import source_properties
from moldau.pipelines.sql.types import SqlType, fits, from_spark

_KAFKA_KEY_TYPES = ("VARCHAR", "INTEGER", "BIGINT", "DOUBLE", "BYTES")


def default_key_format(columns: int) -> str:
    return "KAFKA" if columns == 1 else "JSON" if columns else "NONE"


def sink_of(statement: CreateAs, plan: Plan, frame: DataFrame, given: Mapping[str, str]) -> Source:
    """Return the stream or table that CREATE … AS SELECT creates."""
    first = plan.inputs[0].source
    types = {field.name: from_spark(field.dataType.jsonValue()) for field in frame.schema.fields}
    columns = tuple(
        ColumnDefinition(one.name, types[one.name], "KEY" if one.is_key else "VALUE")
        for one in sorted(plan.columns, key=lambda column: not column.is_key)
    )
    if all(column.role == "KEY" for column in columns):
        raise SqlError(
            "The SELECT has no columns besides the key",
            statement.select.place,
            "Add columns, or the key as a value: AS_VALUE(column) AS other_name",
        )
    keys = [column for column in columns if column.role == "KEY"]
    return Source(
        kind=statement.kind,
        name=statement.name.name,
        topic=given.get("topic", statement.name.name),
        columns=columns,
        key_format=given.get("key_format", _inherited(first.key_format, keys)).upper(),
        value_format=given.get("value_format", first.value_format).upper(),
        properties=_registry_of(first) | source_properties(given),
        window=plan.window,
    )


def _registry_of(source: Source) -> dict[str, str]:
    """Return the schema registry of a source, which its sinks also use."""
    name = "schema.registry.url"
    return {name: source.properties[name]} if name in source.properties else {}


def _inherited(key_format: str, keys: list[ColumnDefinition]) -> str:
    """Return the key format of the source if it supports these keys."""
    if len(keys) != 1 or key_format == "NONE":
        key_format = default_key_format(len(keys))
    is_simple = not keys or keys[0].type.kind in _KAFKA_KEY_TYPES
    return key_format if key_format != "KAFKA" or is_simple else "JSON"


def check_kind(statement: CreateAs, plan: Plan) -> None:
    if statement.kind == plan.kind:
        return
    name, place = statement.name.name, statement.name.place
    if plan.kind == "TABLE":
        hint = f"Write CREATE TABLE {name} AS SELECT …"
        raise SqlError("The result of this SELECT is a table, not a stream", place, hint)
    hint = f"Write CREATE STREAM {name} AS SELECT …, or add GROUP BY and an aggregate."
    raise SqlError("The result of this SELECT is a stream, not a table", place, hint)


def check_replacement(previous: Source, source: Source, place: Place) -> None:
    if previous.kind != source.kind:
        raise SqlError(f"{previous.name} is a {previous.kind.lower()}", place, "DROP it first.")
    if previous.key_columns != source.key_columns or previous.window != source.window:
        raise SqlError(
            f"The key of {previous.name} cannot be changed",
            place,
            f"DROP {previous.kind} {previous.name} first, or choose another name.",
        )


def output_names(plan: Plan, sink: Source) -> dict[str, str]:
    """Return the names of the plan's columns by those of the sink."""
    selected = {column.name.upper(): column.name for column in plan.columns}
    missing = [column.name for column in sink.columns if column.name.upper() not in selected]
    known = {column.name.upper() for column in sink.columns}
    extra = [column.name for column in plan.columns if column.name.upper() not in known]
    if missing or extra:
        parts = [f"not selected: {', '.join(missing)}"] if missing else []
        parts += [f"not in {sink.name}: {', '.join(extra)}"] if extra else []
        raise SqlError(f"The columns do not match those of {sink.name} ({'; '.join(parts)})")
    return {column.name: selected[column.name.upper()] for column in sink.columns}


def check_types(sink: Source, plan: Plan, frame: DataFrame, select: Select) -> None:
    try:
        names = output_names(plan, sink)
    except SqlError as error:
        raise error.at(select.place) from error
    types: dict[str, SqlType] = {
        one.name: from_spark(one.dataType.jsonValue()) for one in frame.schema.fields
    }
    for column in sink.columns:
        given = types[names[column.name]]
        if not fits(given, column.type):
            raise SqlError(
                f"Column {column.name} of {sink.name} has type {column.type}, but {given} is selected",
                select.place,
                f"Write: CAST(… AS {column.type}) AS {column.name}",
            )
