"""Executes CREATE and INSERT INTO … SELECT, which add definitions to the catalog."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from moldau.pipelines.source.late_topics import LATE_CONFIG
from moldau.pipelines.sql.catalog.catalog import PersistentQuery, Source
from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.compile.sinks import (
    check_kind,
    check_replacement,
    check_types,
    default_key_format,
    sink_of,
)
from moldau.pipelines.sql.compile.split_query import split_query
from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.statements import CreateAs, CreateSource, InsertSelect
from moldau.pipelines.sql.properties import SETTINGS, checked_properties, key_window, source_properties
from moldau.pipelines.sql.results import Message, Result
from moldau.pipelines.sql.run.columns import columns_of_schemas, schema_ids
from moldau.pipelines.sql.run.context import Context, spark_errors
from moldau.pipelines.sql.run.drop_terminate import end_queries
from moldau.pipelines.sql.run.records import key_format, key_schema, value_format, value_schema
from moldau.pipelines.sql.run.streaming import late_topic

_DAY_MS = 86_400_000


def create_source(context: Context, statement: CreateSource, text: str) -> Result:
    name, place = statement.name.name, statement.name.place
    if (existing := _existing(context, statement)) is not None:
        return existing
    given = _with_registry(context, checked_properties(statement.properties))
    topic = given.get("topic", name)
    given = schema_ids(given, topic, statement)
    columns = columns_of_schemas(given, topic, statement)
    keys = sum(column.role == "KEY" for column in columns)
    if statement.kind == "TABLE" and not keys:
        raise SqlError(
            "A table needs a primary key", place, f"Write: CREATE TABLE {name} (id INT PRIMARY KEY, …)"
        )
    source = Source(
        kind=statement.kind,
        name=name,
        topic=topic,
        columns=columns,
        key_format=given.get("key_format", default_key_format(keys)).upper(),
        value_format=given.get("value_format", "JSON").upper(),
        properties=source_properties(given),
        window=key_window(given, place),
        statement=text,
    )
    _check(source, place)
    if context.partitions(source.topic) is None:
        if "partitions" not in given:
            raise SqlError(
                f"Topic {source.topic} does not exist",
                statement.properties.place_of("topic", "kafka_topic") or place,
                f"Check the name, or create it with WITH (topic='{source.topic}', partitions=1, …).",
            )
        _create_topic(context, source, given, int(given["partitions"]))
    letters = given.get("dead_letter_topic")
    if letters is not None and context.partitions(letters) is None:
        context.create_topic(letters, 1, int(given.get("replicas", -1)), {})
    context.store.put(source)
    return Message(f"{statement.kind.capitalize()} {name} reads topic {source.topic}.")


def _existing(context: Context, statement: CreateSource | CreateAs) -> Message | None:
    """Return the result if the name exists and IF NOT EXISTS is given; None if it can be created."""
    existing = context.catalog.get(statement.name.name)
    if existing is None or statement.replace:
        return None
    if statement.if_not_exists:
        return Message(f"{existing.kind.capitalize()} {existing.name} already exists.")
    raise SqlError(
        f"A {existing.kind.lower()} {existing.name} already exists",
        statement.name.place,
        f"Use CREATE OR REPLACE or CREATE … IF NOT EXISTS, or DROP {existing.kind} {existing.name} first.",
    )


def _with_registry(context: Context, given: Mapping[str, str]) -> dict[str, str]:
    """Add the schema registry of the settings, unless the statement names one."""
    url = context.settings["schema.registry.url"]
    return {"schema.registry.url": url, **given} if url else dict(given)


def _check(source: Source, place: Place) -> None:
    """Check that the formats support the columns."""
    from pyspark.sql import functions as F

    for column in source.columns:
        if column.name.startswith("__") or column.name.upper() in source.pseudo_columns:
            raise SqlError(
                f"{column.name} is reserved for a pseudo column", place, "Choose another column name."
            )
    time_column = source.properties.get("timestamp")
    if time_column is not None and source.column(time_column) is None:
        names = ", ".join(column.name for column in source.columns)
        raise SqlError(f"Unknown column {time_column} for timestamp", place, f"The columns are {names}.")
    key_format(source).decode(F.lit(None).cast("binary"), key_schema(source))
    value_format(source).decode(F.lit(None).cast("binary"), value_schema(source))


def _create_topic(context: Context, source: Source, given: Mapping[str, str], partitions: int) -> None:
    configs = {}
    if source.is_table:
        configs["cleanup.policy"] = "compact,delete" if source.window else "compact"
    if source.is_table and source.window is not None:
        kept = source.window.retention_ms or source.window.size_ms + (source.window.grace_ms or _DAY_MS)
        configs["retention.ms"] = str(max(kept, 7 * _DAY_MS))
    if "retention_ms" in given:
        configs["retention.ms"] = given["retention_ms"]
    context.create_topic(source.topic, partitions, int(given.get("replicas", -1)), configs)


def create_as(context: Context, statement: CreateAs, text: str) -> Result:
    name, place = statement.name.name, statement.name.place
    if (existing := _existing(context, statement)) is not None:
        return existing
    given = _with_registry(context, checked_properties(statement.properties))
    parts = split_query(statement, context.catalog)
    if parts is not None:
        create_as(context, parts.first, parts.first_text)
        return create_as(context, parts.second, parts.second_text)
    plan = compile_select(statement.select, context.catalog, "persist")
    check_kind(statement, plan)
    with spark_errors(statement.select.place):
        frame = context.frames.analyzed(plan)
    query_id = context.catalog.new_query_id(f"C{statement.kind[0]}AS_{name}")
    source = replace(sink_of(statement, plan, frame, given), statement=text, query=query_id)
    _check(source, place)
    previous = context.catalog.get(name)
    if previous is not None:
        check_replacement(previous, source, place)
        end_queries(context, [query for query in context.catalog.writers(name) if query.id == previous.query])
    partitions = context.partitions(plan.inputs[0].source.topic) or 1
    if context.partitions(source.topic) is None:
        _create_topic(context, source, given, int(given.get("partitions", partitions)))
    context.store.put(source)
    _run(context, query_id, text, source, plan)
    return Message(f"{statement.kind.capitalize()} {name} is written by query {query_id}.")


def _run(context: Context, query_id: str, text: str, sink: Source, plan: Plan) -> None:
    sources = tuple(dict.fromkeys(given.source.name for given in plan.inputs))
    settings = {name: context.settings[name] for name in SETTINGS}
    settings["created"] = str(time.time_ns() // 1_000_000)
    if plan.late:
        _create_late_topic(context, sink, plan)
    context.store.put(PersistentQuery(query_id, text, sink.name, sources, settings))
    context.queries.reconcile(context.catalog)


def _create_late_topic(context: Context, sink: Source, plan: Plan) -> None:
    name = late_topic(context.store.topic, sink.name)
    if context.partitions(name) is None:
        partitions = max(context.partitions(given.source.topic) or 1 for given in plan.inputs)
        context.create_topic(name, partitions, -1, LATE_CONFIG)


def insert_select(context: Context, statement: InsertSelect, text: str) -> Result:
    sink = context.catalog.find(statement.name)
    if sink.is_table:
        raise SqlError(
            "INSERT INTO … SELECT can write only to a stream",
            statement.name.place,
            "Use CREATE TABLE … AS SELECT …",
        )
    plan = compile_select(statement.select, context.catalog, "persist")
    if plan.kind == "TABLE":
        raise SqlError("The result of this SELECT is a table, not a stream", statement.select.place)
    with spark_errors(statement.select.place):
        frame = context.frames.analyzed(plan)
    check_types(sink, plan, frame, statement.select)
    query_id = context.catalog.new_query_id("INSERTQUERY")
    _run(context, query_id, text, sink, plan)
    return Message(f"Query {query_id} writes to {sink.name}.")
