"""Compiles a SELECT of ksqlDB to Spark SQL.

    SELECT o.id, COUNT(*) AS n FROM orders o WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY o.id
    SELECT `o`.`id` AS `id`, COUNT(*) AS `n` FROM `__source_0` AS `o` GROUP BY `o`.`id`, window(…)

`scope` resolves names, `selection` determines the columns and the key, `query_text` writes the Spark SQL.
This module checks the clauses, and decides whether the result is a stream or a table, how the query runs, and
how its sources are read.
"""

from __future__ import annotations

from sqlglot import exp

from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.compile.joins import check_joins, join_key
from moldau.pipelines.sql.compile.plan import Input, OutputColumn, Plan, Purpose, Reading, Running
from moldau.pipelines.sql.compile.query_text import late_rows, query_sql, views, window_sql
from moldau.pipelines.sql.compile.scope import Entry, Scope, has_aggregate
from moldau.pipelines.sql.compile.selection import Compilation, key_positions, selected_columns
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.statements import Select

#: ksqlDB's grace period of windows and joins without GRACE PERIOD.
DEFAULT_GRACE_MS = 24 * 3_600_000


def compile_select(select: Select, catalog: Catalog, purpose: Purpose) -> Plan:
    entries = [
        Entry(part.alias, catalog.find(part.source))
        for part in (select.source, *(join.source for join in select.joins))
    ]
    _check_aliases(select, entries)
    window = window_sql(select.window, entries[0].alias) if select.window else None
    scope = Scope(entries, window, by_offset=_grouped_by_key(select, entries))
    check_joins(select, scope)
    scope.join_key = join_key(select, scope) if select.joins else None
    work = Compilation(select, purpose, scope, window)
    _check_clauses(work)
    selected = selected_columns(work)
    keys = key_positions(work, selected) if purpose == "persist" else set()
    running = _running(work)
    return Plan(
        kind=work.kind,
        inputs=_inputs(work, running),
        sql=query_sql(work, selected, running),
        columns=tuple(OutputColumn(one.name, index in keys) for index, one in enumerate(selected)),
        running=running,
        window=select.window
        or (None if work.aggregates or select.partition_by else entries[0].source.window),
        limit=select.limit,
        late=late_rows(work) if purpose == "persist" else (),
    )


def _check_aliases(select: Select, entries: list[Entry]) -> None:
    names = [entry.alias.upper() for entry in entries]
    for join in select.joins:
        if names.count(join.source.alias.upper()) > 1:
            raise SqlError(
                f"Duplicate source name {join.source.alias}", join.source.source.place, "Write: … AS alias"
            )


def _grouped_by_key(select: Select, entries: list[Entry]) -> bool:
    """Whether all records of a group are in one partition, so that they are ordered by offset."""
    names = {node.name.upper() for node in select.group_by if isinstance(node, exp.Column)}
    keys = {column.name.upper() for column in entries[0].source.key_columns}
    return not select.joins and bool(keys) and keys <= names


def _check_clauses(work: Compilation) -> None:
    select = work.select
    work.aggregates = bool(select.group_by) or any(
        has_aggregate(item.expression) for item in select.items if item.star is None
    )
    place = select.place
    if work.aggregates and not select.group_by and work.purpose != "pull":
        raise SqlError("An aggregate needs GROUP BY", place, "Add: … GROUP BY column")
    if select.window and not work.aggregates:
        raise SqlError("A WINDOW needs GROUP BY and an aggregate such as COUNT(*)", place)
    if select.having is not None and not work.aggregates:
        raise SqlError("HAVING needs GROUP BY", place, "Without GROUP BY, use WHERE.")
    if select.where is not None and has_aggregate(select.where):
        raise SqlError("WHERE cannot contain aggregates", place, "Use HAVING for conditions on aggregates.")
    if select.partition_by and (work.aggregates or work.over_tables):
        raise SqlError("PARTITION BY changes the key of a stream; the result is a table", place)
    if select.order_by and work.purpose != "pull":
        raise SqlError("Only pull queries support ORDER BY", place, "Remove ORDER BY.")
    if work.purpose == "persist" and select.limit is not None:
        raise SqlError("A persistent query cannot have a LIMIT", place, "Remove LIMIT.")
    if select.window and work.over_tables and work.purpose != "pull":
        raise SqlError("WINDOW applies to the records of a stream; the source is a table", place)
    work.grouped = [work.scope.sql(node) for node in select.group_by]


def _running(work: Compilation) -> Running:
    if work.purpose == "pull":
        return "batch"
    if work.over_tables and (work.aggregates or work.select.joins):
        return "recompute"
    if not work.aggregates:
        return "append"
    final = work.select.emit == "FINAL" or (work.select.window and work.select.window.kind == "SESSION")
    return "append" if final else "update"


def _inputs(work: Compilation, running: Running) -> tuple[Input, ...]:
    inputs: list[Input] = []
    watermarks = _watermarks(work, running)
    for view, entry in zip(views(work), work.scope.entries, strict=True):
        reading: Reading = "stream"
        if running in ("batch", "recompute") or (inputs and entry.source.is_table):
            reading = "now"
        watermark = watermarks if reading == "stream" else None
        inputs.append(Input(view, entry.source, reading, watermark))
    return tuple(inputs)


def _watermarks(work: Compilation, running: Running) -> int | None:
    """Return the delay of the watermark. Without GRACE PERIOD, results that are emitted only once do not wait
    for ksqlDB's default grace period."""
    select = work.select
    if select.window is not None:
        default = DEFAULT_GRACE_MS if running == "update" else 0
        return default if select.window.grace_ms is None else select.window.grace_ms
    streams = [join for join in select.joins if join.before_ms is not None]
    if not streams:
        return None
    default = DEFAULT_GRACE_MS if all(join.kind == "INNER" for join in streams) else 0
    # A record that is as late as WITHIN allows is still joined.
    return max(
        max(join.before_ms or 0, join.after_ms or 0) + (default if join.grace_ms is None else join.grace_ms)
        for join in streams
    )
