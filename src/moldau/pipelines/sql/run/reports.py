"""Executes SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from moldau.pipelines.sql.catalog.catalog import PersistentQuery, Source
from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.function_tables import AGGREGATES, SAME, SCALARS
from moldau.pipelines.sql.compile.split_query import INTERNAL
from moldau.pipelines.sql.errors import SqlError, suggestion
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import (
    CreateAs,
    Describe,
    Explain,
    InsertSelect,
    Named,
    Select,
    Show,
)
from moldau.pipelines.sql.properties import SETTINGS
from moldau.pipelines.sql.results import Message, Result, Rows
from moldau.pipelines.sql.run.context import Context, spark_errors
from moldau.pipelines.sql.run.select import explained
from moldau.pipelines.sql.run.streaming import late_topic


def show(context: Context, statement: Show) -> Result:
    match statement.what:
        case "TOPICS":
            return _topics(context, statement.everything)
        case "STREAMS" | "TABLES":
            return _sources(context, statement.what == "TABLES", statement.extended)
    return _SHOWN[statement.what](context)


def _sources(context: Context, tables: bool, extended: bool) -> Result:
    kind = "TABLE" if tables else "STREAM"
    header = [f"{kind.capitalize()} Name", "Kafka Topic", "Key Format", "Value Format"]
    found = list(context.catalog.sources("TABLE" if tables else "STREAM"))
    rows = [[one.name, one.topic, one.key_format, one.value_format] for one in found]
    if tables:
        header.append("Windowed")
        rows = [[*row, str(one.window is not None).lower()] for row, one in zip(rows, found, strict=True)]
    if extended:
        header += ["Columns", "Written by"]
        columns = [", ".join(f"{one.name} {one.type}" for one in source.columns) for source in found]
        writers = [", ".join(query.id for query in context.catalog.writers(one.name)) for one in found]
        rows = [[*row, *more] for row, *more in zip(rows, columns, writers, strict=True)]
    return Rows(header, rows)


def _topics(context: Context, everything: bool) -> Result:
    """List the topics of users; with `everything`, also internal topics."""
    own = (context.store.topic, INTERNAL)
    listed = context.admin.list_topics().items()
    names = [name for name, topic in listed if everything or not (topic.internal or name.startswith(own))]
    described = context.admin.describe_topics(names)
    rows = []
    for name, topic in sorted(described.items()):
        if not isinstance(topic, Exception):
            replicas = max((len(partition.replicas) for partition in topic.partitions), default=0)
            rows.append([name, len(topic.partitions), replicas])
    return Rows(["Kafka Topic", "Partitions", "Partition Replicas"], rows)


def _queries(context: Context) -> Result:
    header = ["Query ID", "Status", "Sink", "Rows/s", "Unreadable", "Late", "Query"]
    rows = []
    for query in context.catalog.queries():
        status = context.queries.status(query)
        state = f"{status.state}: {_first_line(status.error)}" if status.error else status.state
        speed = round(status.rows_per_second)
        rows.append(
            [query.id, state, query.sink, speed, status.unreadable, status.late, _flat(query.statement)]
        )
    return Rows(header, rows)


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _flat(statement: str) -> str:
    return " ".join(statement.split())


def _functions(context: Context) -> Result:
    spark = [row[0] for row in context.spark.sql("SHOW FUNCTIONS").collect()]
    known = dict.fromkeys(AGGREGATES, "AGGREGATE") | dict.fromkeys((*SCALARS, *SAME), "SCALAR")
    names = sorted({*known, *(name.upper() for name in spark if name[0].isalpha())})
    return Rows(["Function Name", "Category"], [[name, known.get(name, "SPARK")] for name in names])


def _properties(context: Context) -> Result:
    rows = [[name, context.settings[name], default] for name, default in sorted(SETTINGS.items())]
    rows.append(["bootstrap.servers", context.bootstrap_servers, ""])
    return Rows(["Property", "Value", "Default"], rows)


_SHOWN: dict[str, Callable[[Context], Result]] = {
    "QUERIES": _queries,
    "FUNCTIONS": _functions,
    "PROPERTIES": _properties,
}


def describe(context: Context, statement: Describe) -> Result:
    if statement.function:
        return _describe_function(context, statement.name)
    source = context.catalog.find(statement.name)
    mark = "(primary key)" if source.is_table else "(key)"
    marks = {"KEY": mark, "HEADERS": "(headers)", "VALUE": ""}
    rows = [[one.name, f"{one.type} {marks[one.role]}".rstrip()] for one in source.columns]
    if source.window is not None:
        rows += [["WINDOWSTART", "BIGINT (window)"], ["WINDOWEND", "BIGINT (window)"]]
    notes = _extended(context, source) if statement.extended else ()
    return Rows(["Field", "Type"], rows, title=f"{source.kind.capitalize()} {source.name}", notes=notes)


def _extended(context: Context, source: Source) -> list[str]:
    partitions = context.partitions(source.topic)
    shown = "missing" if partitions is None else f"{partitions} partitions"
    notes = [
        f"Topic: {source.topic} ({shown}), key {source.key_format}, value {source.value_format}",
        *(f"{name}: {value}" for name, value in source.properties.items()),
    ]
    if source.window is not None:
        notes.append(f"Window: {source.window.kind}, {source.window.size_ms} ms")
    notes += [f"Read by {query.id}" for query in context.catalog.readers(source.name)]
    for query in context.catalog.writers(source.name):
        notes += _query_notes(context, query)
    notes.append(f"Statement: {_flat(source.statement)}")
    return notes


def _query_notes(context: Context, query: PersistentQuery) -> list[str]:
    status = context.queries.status(query)
    notes = [f"Written by {query.id}: {status.state}, {status.batches} batches"]
    if status.error:
        notes.append(f"{query.id}: {status.error}")
    if status.late:
        topic = late_topic(context.store.topic, query.sink)
        notes.append(f"{query.id}: {status.late} late records were written to {topic}")
    if status.unreadable:
        notes.append(f"{query.id}: {status.unreadable} records could not be deserialized: {status.reason}")
    return notes


def _describe_function(context: Context, named: Named) -> Result:
    name = named.name.upper()
    if name in SCALARS or name in AGGREGATES:
        kind = "scalar" if name in SCALARS else "aggregate"
        templates = SCALARS.get(name) or AGGREGATES[name]
        lines = [f"{name}: a ksqlDB {kind} function. The Spark expression, with the arguments _1, _2, …:"]
        return Message("\n".join([*lines, *(f"  {template}" for template in templates)]))
    lines = [row[0] for row in context.spark.sql(f"DESCRIBE FUNCTION EXTENDED `{named.name}`").collect()]
    if any("not found" in line for line in lines):
        hint = suggestion(name, [*SCALARS, *AGGREGATES]) or "SHOW FUNCTIONS lists them."
        raise SqlError(f"Unknown function {named.name}", named.place, hint)
    return Message("\n".join(line for line in lines if not line.startswith("Class:")).strip())


def explain(context: Context, statement: Explain) -> Result:
    if isinstance(statement.query, Select):
        plan, frame = explained(context, statement.query)
    else:
        query = context.catalog.find_query(statement.query)
        parsed = next(parse(query.statement))
        if not isinstance(parsed, CreateAs | InsertSelect):
            raise SqlError(f"{query.id} is not a query", statement.query.place)
        plan = compile_select(parsed.select, context.catalog, "persist")
        with spark_errors(None):
            frame = context.frames.result(plan)
    inputs = ", ".join(
        f"{given.view} = {given.source.name} ({given.reading}"
        + (f", watermark {given.watermark_ms} ms)" if given.watermark_ms is not None else ")")
        for given in plan.inputs
    )
    parts = [
        f"Result: {plan.kind.lower()}, run as {plan.running}",
        f"Sources: {inputs}",
        f"Spark SQL:\n{plan.sql}",
        _spark_plan(frame),
    ]
    return Message("\n\n".join(parts))


def _spark_plan(frame: DataFrame) -> str:
    """Return Spark's plan. Streams are planned when they run, so theirs is the logical plan."""
    if frame.isStreaming and isinstance(frame, ClassicFrame):
        return f"== Analyzed Logical Plan ==\n{frame._jdf.queryExecution().analyzed().treeString()}".strip()
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain()
    return shown.getvalue().strip()
