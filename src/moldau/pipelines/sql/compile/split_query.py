"""Splits a persistent query that Spark cannot run as one query into two, with a stream in between.

Spark supports stream-stream joins only in append mode, and aggregates with updates only in update mode.
Therefore

    CREATE TABLE t AS SELECT a.x, COUNT(*) FROM a JOIN b WITHIN 1 HOUR ON a.id = b.id GROUP BY a.x

is split into a stream `t_join` with the columns of all sources (topic `_moldau_sql-t_join`), and a table over
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from moldau.pipelines.sql.catalog.catalog import PSEUDO_COLUMNS, WINDOW_BOUNDS, Catalog
from moldau.pipelines.sql.compile.joins import on_sides
from moldau.pipelines.sql.compile.scope import Entry, Scope, has_aggregate
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.dialect import Ksql, quoted
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateAs, Select

INTERNAL = "_moldau_sql-"


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """The two statements that replace one."""

    first: CreateAs
    first_text: str
    second: CreateAs
    second_text: str


def needs_split(select: Select, catalog: Catalog) -> bool:
    sources = [catalog.find(part.source) for part in (select.source, *(join.source for join in select.joins))]
    grouped = select.group_by or any(has_aggregate(item.expression) for item in select.items if not item.star)
    streams = sum(not source.is_table for source in sources)
    session = select.window is not None and select.window.kind == "SESSION"
    return bool(grouped) and streams > 1 and select.emit != "FINAL" and not session


def split_query(statement: CreateAs, catalog: Catalog) -> SplitQuery | None:
    """Split a statement in two; return None if it can run as one query."""
    select = statement.select
    if statement.kind != "TABLE" or not needs_split(select, catalog):
        return None
    parts = (select.source, *(join.source for join in select.joins))
    scope = Scope([Entry(part.alias, catalog.find(part.source)) for part in parts])
    name = f"{statement.name.name}_join"
    first_text = _joined(statement, scope, name)
    second_text = _grouped(statement, scope, name)
    first, second = next(parse(first_text)), next(parse(second_text))
    if not isinstance(first, CreateAs) or not isinstance(second, CreateAs):
        raise SqlError("This query cannot be split in two", select.place)
    return SplitQuery(first, first_text, replace(second, replace=statement.replace), second_text)


def _joined(statement: CreateAs, scope: Scope, name: str) -> str:
    select = statement.select
    text = select.place.text
    columns = [
        f"{quoted(entry.alias)}.{quoted(column.name)} AS {quoted(f'{entry.alias}_{column.name}')}"
        for entry in scope.entries
        for column in entry.source.columns
    ]
    left = on_sides(select.joins[0], scope)[0]
    start = select.source.source.place.start
    end = max(join.place.end for join in select.joins)
    where = f" WHERE {_written(select.where)}" if select.where is not None else ""
    properties = f"topic={_text(INTERNAL + name)}, value_format='JSON'"
    return (
        f"CREATE OR REPLACE STREAM {quoted(name)} WITH ({properties}) AS SELECT {left} AS `join_key`, "
        f"{', '.join(columns)} FROM {text[start:end]}{where}"
    )


def _grouped(statement: CreateAs, scope: Scope, name: str) -> str:
    select = statement.select
    items = ", ".join(
        f"{_renamed(item.expression, scope)} AS {quoted(item.alias or _name(item.expression, index))}"
        for index, item in enumerate(select.items)
    )
    groups = ", ".join(_renamed(node, scope) for node in select.group_by)
    having = f" HAVING {_renamed(select.having, scope)}" if select.having is not None else ""
    properties = ", ".join(f"{key}={_text(value)}" for key, value in statement.properties.items())
    given = f" WITH ({properties})" if properties else ""
    return (
        f"CREATE TABLE {quoted(statement.name.name)}{given} AS SELECT {items} FROM {quoted(name)}"
        f"{_window(select)} GROUP BY {groups}{having}"
    )


def _text(value: str) -> str:
    """Write a string literal."""
    return "'" + value.replace("'", "''") + "'"


def _window(select: Select) -> str:
    window = select.window
    if window is None:
        return ""
    parts = [f"SIZE {window.size_ms} MILLISECONDS"]
    for words, value in (
        ("ADVANCE BY", window.advance_ms),
        ("RETENTION", window.retention_ms),
        ("GRACE PERIOD", window.grace_ms),
    ):
        if value is not None:
            parts.append(f"{words} {value} MILLISECONDS")
    return f" WINDOW {window.kind} ({', '.join(parts)})"


def _name(expression: exp.Expression, index: int) -> str:
    return expression.name if isinstance(expression, exp.Column | exp.Dot) else f"KSQL_COL_{index}"


def _renamed(expression: exp.Expression, scope: Scope) -> str:
    """Rewrite an expression over the sources to one over the intermediate stream."""
    holder = exp.Paren(this=expression.copy())
    for column in list(holder.find_all(exp.Column)):
        if column.name.upper() in WINDOW_BOUNDS:
            continue
        resolved = scope.resolved(column)
        found = resolved.find(exp.Column)
        if found is None:
            continue
        # The timestamp of a joined record is that of the intermediate stream.
        name = found.name if found.name in PSEUDO_COLUMNS else f"{found.table}_{found.name}"
        renamed = exp.column(exp.to_identifier(name, quoted=True))
        if resolved is found:
            column.replace(renamed)
        else:
            found.replace(renamed)
            column.replace(resolved)
    return _written(holder.this)


def _written(expression: exp.Expression) -> str:
    return expression.sql(dialect=Ksql).replace(" -> ", " => ")
