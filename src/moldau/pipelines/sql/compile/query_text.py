"""Writes a SELECT as Spark SQL.

The view of a source has its columns, the pseudo columns (ROWTIME, …) and internal columns that start with
`__`. A persistent query also selects the additional columns of `plan`: a row of a table that WHERE or HAVING
exclude is marked instead of dropped, because it must be deleted from the result.
"""

from __future__ import annotations

from moldau.pipelines.sql.compile.joins import joins_sql
from moldau.pipelines.sql.compile.plan import (
    DELETED,
    KEEP,
    RECORD,
    RESULT_TIME,
    WINDOW_END,
    WINDOW_START,
    Late,
    Running,
)
from moldau.pipelines.sql.compile.scope import TIME, bound
from moldau.pipelines.sql.compile.selection import Compilation, Selected
from moldau.pipelines.sql.parse.dialect import quoted
from moldau.pipelines.sql.parse.statements import Window


def window_sql(window: Window, alias: str) -> str:
    time = f"{quoted(alias)}.{quoted(TIME)}"
    match window.kind:
        case "SESSION":
            # Kafka Streams merges records that are exactly the gap apart; Spark merges only closer ones.
            return f"session_window({time}, '{window.size_ms + 1} milliseconds')"
        case "HOPPING":
            return f"window({time}, '{window.size_ms} milliseconds', '{window.advance_ms} milliseconds')"
    return f"window({time}, '{window.size_ms} milliseconds')"


def query_sql(work: Compilation, selected: list[Selected], running: Running) -> str:
    select, scope = work.select, work.scope
    columns = [f"{one.sql} AS {quoted(one.name)}" for one in selected]
    marked = work.purpose == "persist" and work.kind == "TABLE"
    where = scope.sql(select.where) if select.where is not None else None
    having = scope.sql(select.having) if select.having is not None else None
    if work.purpose == "persist":
        columns += _extra_columns(work)
    stateless_table = work.over_tables and running == "append"
    if stateless_table:
        kept = f"NOT {quoted(scope.entries[0].alias)}.{quoted(DELETED)}"
        where = f"{kept} AND ({where})" if where else kept
    if marked:
        condition = where if stateless_table else having
        columns.append(f"{f'coalesce({condition}, false)' if condition else 'true'} AS {KEEP}")
        where, having = (None, having) if stateless_table else (where, None)
    clauses = [f"SELECT {', '.join(columns)}", f"FROM {joins_sql(work.select, scope)}"]
    if where:
        clauses.append(f"WHERE {where}")
    groups = [*work.grouped, *([work.window] if work.window else [])]
    if groups:
        clauses.append(f"GROUP BY {', '.join(groups)}")
    if having:
        clauses.append(f"HAVING {having}")
    if select.order_by and work.purpose == "pull":
        clauses.append(f"ORDER BY {select.order_by}")
    if select.limit is not None and running == "batch":
        clauses.append(f"LIMIT {select.limit}")
    return "\n".join(clauses)


def _extra_columns(work: Compilation) -> list[str]:
    entries = work.scope.entries
    # In a stream-table join, the timestamp is that of the stream's record.
    timed = [one for one in entries if work.over_tables or not one.source.is_table]
    times = [f"{quoted(entry.alias)}.{quoted(TIME)}" for entry in timed]
    time = times[0] if len(times) == 1 else f"greatest({', '.join(times)})"
    columns = [f"{f'max({time})' if work.aggregates else time} AS {RESULT_TIME}"]
    window = work.scope.entries[0].source.window
    if work.window is not None:
        for name, column in (("WINDOWSTART", WINDOW_START), ("WINDOWEND", WINDOW_END)):
            columns.append(f"{bound(work.window, name).name} AS {column}")
    elif window is not None and not work.aggregates and not work.select.partition_by:
        alias = quoted(work.scope.entries[0].alias)
        columns += [f"{alias}.WINDOWSTART AS {WINDOW_START}", f"{alias}.WINDOWEND AS {WINDOW_END}"]
    return columns


def late_rows(work: Compilation) -> tuple[Late, ...]:
    """Return the inputs that may have late records. A stream-stream join drops them before a window does."""
    select, entries = work.select, work.scope.entries
    if any(join.before_ms is not None for join in select.joins):
        return tuple(
            Late(f"SELECT {_record_columns(entry.alias)} FROM `{view}` AS {quoted(entry.alias)}", (view,))
            for view, entry in zip(views(work), entries, strict=True)
            if not entry.source.is_table
        )
    if select.window is None:
        return ()
    where = f"\nWHERE {work.scope.sql(select.where)}" if select.where is not None else ""
    sql = f"SELECT {_record_columns(entries[0].alias)} FROM {joins_sql(select, work.scope)}{where}"
    return (Late(sql, tuple(views(work)), select.window),)


def _record_columns(alias: str) -> str:
    return f"{quoted(alias)}.{quoted(RECORD)}, {quoted(alias)}.{quoted(TIME)}"


def views(work: Compilation) -> list[str]:
    """Return the names of the views of the sources."""
    return [f"__source_{index}" for index in range(len(work.scope.entries))]
