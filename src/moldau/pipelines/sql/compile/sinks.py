"""What a persistent query writes to: its columns and formats follow from what is selected."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from moldau.pipelines.sql import properties as with_properties
from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.statements import ColumnDefinition, CreateAs, Select
from moldau.pipelines.sql.types import SqlType, fits, from_spark

_KEYS_OF_KAFKA = ("VARCHAR", "INTEGER", "BIGINT", "DOUBLE", "BYTES")


def usual_key_format(columns: int) -> str:
    return "KAFKA" if columns == 1 else "JSON" if columns else "NONE"


def sink_of(statement: CreateAs, plan: Plan, frame: DataFrame, given: Mapping[str, str]) -> Source:
    """The stream or table that CREATE … AS SELECT makes."""
    first = plan.inputs[0].source
    types = {field.name: from_spark(field.dataType.jsonValue()) for field in frame.schema.fields}
    columns = tuple(
        ColumnDefinition(one.name, types[one.name], "KEY" if one.is_key else "VALUE")
        for one in sorted(plan.columns, key=lambda column: not column.is_key)
    )
    if all(column.role == "KEY" for column in columns):
        raise SqlError(
            "Nothing is selected but the key",
            statement.select.place,
            "Select more, or the key as a value too: AS_VALUE(column) AS other_name",
        )
    keys = [column for column in columns if column.role == "KEY"]
    return Source(
        kind=statement.kind,
        name=statement.name.name,
        topic=given.get("topic", statement.name.name),
        columns=columns,
        key_format=given.get("key_format", _inherited(first.key_format, keys)).upper(),
        value_format=given.get("value_format", first.value_format).upper(),
        properties=with_properties.kept(given),
        window=plan.window,
    )


def _inherited(key_format: str, keys: list[ColumnDefinition]) -> str:
    """The format of the source's keys, if it can hold these."""
    if len(keys) != 1 or key_format == "NONE":
        key_format = usual_key_format(len(keys))
    is_simple = not keys or keys[0].type.kind in _KEYS_OF_KAFKA
    return key_format if key_format != "KAFKA" or is_simple else "JSON"


def check_kind(statement: CreateAs, plan: Plan) -> None:
    if statement.kind == plan.kind:
        return
    name, place = statement.name.name, statement.name.place
    if plan.kind == "TABLE":
        hint = f"Write CREATE TABLE {name} AS SELECT …"
        raise SqlError("What this SELECT gives is a table, not a stream", place, hint)
    hint = f"Write CREATE STREAM {name} AS SELECT …, or add GROUP BY and an aggregate."
    raise SqlError("What this SELECT gives is a stream, not a table", place, hint)


def check_replacement(previous: Source, source: Source, place: Place) -> None:
    if previous.kind != source.kind:
        raise SqlError(f"{previous.name} is a {previous.kind.lower()}", place, "DROP it first.")
    if previous.key_columns != source.key_columns or previous.window != source.window:
        raise SqlError(
            f"The key of {previous.name} would be another one",
            place,
            f"DROP {previous.kind} {previous.name} first, or choose another name.",
        )


def output_names(plan: Plan, sink: Source) -> dict[str, str]:
    """Columns of the sink -> columns of the plan."""
    selected = {column.name.upper(): column.name for column in plan.columns}
    missing = [column.name for column in sink.columns if column.name.upper() not in selected]
    known = {column.name.upper() for column in sink.columns}
    extra = [column.name for column in plan.columns if column.name.upper() not in known]
    if missing or extra:
        parts = [f"not selected: {', '.join(missing)}"] if missing else []
        parts += [f"not in {sink.name}: {', '.join(extra)}"] if extra else []
        raise SqlError(f"The columns are not those of {sink.name} ({'; '.join(parts)})")
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
                f"Column {column.name} of {sink.name} is {column.type}, and what is selected is {given}",
                select.place,
                f"Write: CAST(… AS {column.type}) AS {column.name}",
            )
