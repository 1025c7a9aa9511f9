"""A SELECT of ksqlDB into Spark SQL.

    SELECT o.id, COUNT(*) AS n FROM orders o WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY o.id
    SELECT `o`.`id` AS `id`, COUNT(*) AS `n` FROM `__source_0` AS `o` GROUP BY `o`.`id`, window(…)

The view of a source has its columns, what every record has (ROWTIME, …) and some that begin with `__`. What
a persistent query needs beside its columns (`plan`) is selected too: a row of a table that WHERE or HAVING
throw out is not dropped but marked, because it has to be deleted from the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from moldau.pipelines.sql.catalog import Catalog
from moldau.pipelines.sql.dialect import place_of, quoted
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.functions import name_of
from moldau.pipelines.sql.joins import joins_sql, on_sides
from moldau.pipelines.sql.plan import (
    DELETED,
    KEEP,
    RESULT_TIME,
    WINDOW_END,
    WINDOW_START,
    Input,
    OutputColumn,
    Plan,
    Purpose,
    Reading,
    Running,
)
from moldau.pipelines.sql.scope import TIME, Entry, Scope, bound, has_aggregate, ungrouped
from moldau.pipelines.sql.statements import Item, Select, SourceKind, Window

#: ksqlDB waits that long for late records of a window or join that says nothing about it.
DEFAULT_GRACE_MS = 24 * 3_600_000


@dataclass
class _Selected:
    """An expression that is selected, with its name in the result."""

    name: str
    sql: str
    item: Item
    forced_value: bool = False


@dataclass
class _Compilation:
    select: Select
    purpose: Purpose
    scope: Scope
    window: str | None
    grouped: list[str] = field(default_factory=list)
    aggregates: bool = False

    @property
    def over_tables(self) -> bool:
        return self.scope.entries[0].source.is_table


def compile_select(select: Select, catalog: Catalog, purpose: Purpose) -> Plan:
    entries = [
        Entry(part.alias, catalog.find(part.source))
        for part in (select.source, *(join.source for join in select.joins))
    ]
    _check_aliases(select, entries)
    window = _window_sql(select.window, entries[0].alias) if select.window else None
    scope = Scope(entries, window, by_offset=_grouped_by_key(select, entries))
    work = _Compilation(select, purpose, scope, window)
    _check_clauses(work)
    selected = _selected(work)
    keys = _keys(work, selected) if purpose == "persist" else set()
    running = _running(work)
    return Plan(
        kind=_kind(work),
        inputs=_inputs(work, running),
        sql=_sql(work, selected, running),
        columns=tuple(OutputColumn(one.name, index in keys) for index, one in enumerate(selected)),
        running=running,
        window=select.window
        or (None if work.aggregates or select.partition_by else entries[0].source.window),
        limit=select.limit,
    )


def _check_aliases(select: Select, entries: list[Entry]) -> None:
    names = [entry.alias.upper() for entry in entries]
    for join in select.joins:
        if names.count(join.source.alias.upper()) > 1:
            raise SqlError(
                f"Two sources are called {join.source.alias}", join.source.source.place, "Write: … AS other"
            )


def _grouped_by_key(select: Select, entries: list[Entry]) -> bool:
    """Whether all records of a group are in one partition, so that their offsets are their order."""
    names = {node.name.upper() for node in select.group_by if isinstance(node, exp.Column)}
    keys = {column.name.upper() for column in entries[0].source.key_columns}
    return not select.joins and bool(keys) and keys <= names


def _window_sql(window: Window, alias: str) -> str:
    time = f"{quoted(alias)}.{quoted(TIME)}"
    match window.kind:
        case "SESSION":
            # Kafka joins records that are exactly the gap apart, Spark only nearer ones.
            return f"session_window({time}, '{window.size_ms + 1} milliseconds')"
        case "HOPPING":
            return f"window({time}, '{window.size_ms} milliseconds', '{window.advance_ms} milliseconds')"
    return f"window({time}, '{window.size_ms} milliseconds')"


def _check_clauses(work: _Compilation) -> None:
    select = work.select
    work.aggregates = bool(select.group_by) or any(
        has_aggregate(item.expression) for item in select.items if item.star is None
    )
    place = select.place
    if work.aggregates and not select.group_by and work.purpose != "pull":
        raise SqlError("An aggregate needs GROUP BY", place, "Say what to group by: … GROUP BY column")
    if select.window and not work.aggregates:
        raise SqlError("A WINDOW needs GROUP BY and an aggregate such as COUNT(*)", place)
    if select.having is not None and not work.aggregates:
        raise SqlError("HAVING needs GROUP BY", place, "Without groups, write WHERE.")
    if select.where is not None and has_aggregate(select.where):
        raise SqlError("WHERE looks at single records", place, "Write conditions on aggregates into HAVING.")
    if select.partition_by and (work.aggregates or work.over_tables):
        raise SqlError("PARTITION BY gives the records of a stream another key; this is a table", place)
    if select.order_by and work.purpose != "pull":
        raise SqlError("Results that never end have no order", place, "Leave ORDER BY out.")
    if work.purpose == "persist" and select.limit is not None:
        raise SqlError("A persistent query has no LIMIT", place, "Leave LIMIT out.")
    if select.window and work.over_tables and work.purpose != "pull":
        raise SqlError("A WINDOW goes over the records of a stream; this is a table", place)
    work.grouped = [work.scope.sql(node) for node in select.group_by]


def _selected(work: _Compilation) -> list[_Selected]:
    found: list[_Selected] = []
    for item in work.select.items:
        if item.star is not None:
            found += _expanded(work, item)
            continue
        if work.aggregates:
            _check_grouped(work, item.expression)
        as_value = name_of(item.expression) == "AS_VALUE"
        name = item.alias or _default_name(item.expression, len(found))
        found.append(_Selected(name, work.scope.sql(item.expression), item, as_value))
    if work.select.having is not None:
        _check_grouped(work, work.select.having)
    _make_distinct(found)
    return found


def _expanded(work: _Compilation, item: Item) -> list[_Selected]:
    """`*`: the columns; with their source's name in front where there are several sources."""
    entries = [entry for entry in work.scope.entries if item.star in ("*", entry.alias)]
    if not entries:
        raise SqlError(f"There is no source {item.star}", item.place)
    if work.aggregates:
        raise SqlError("* cannot be grouped", item.place, "Name the columns that are grouped by.")
    found = []
    for entry in entries:
        source = entry.source
        bounds = ("WINDOWSTART", "WINDOWEND") if source.window and work.purpose != "persist" else ()
        keys = [column.name for column in source.key_columns]
        others = [column.name for column in source.columns if column.role != "KEY"]
        for name in (*keys, *bounds, *others):
            shown = f"{entry.alias}_{name}" if len(entries) > 1 else name
            sql = f"{quoted(entry.alias)}.{quoted(name)}"
            found.append(_Selected(shown, sql, item))
    return found


def _default_name(expression: exp.Expression, index: int) -> str:
    if isinstance(expression, exp.Column | exp.Dot):
        return expression.name
    if name_of(expression) == "AS_VALUE" and isinstance(expression.expressions[0], exp.Column):
        return str(expression.expressions[0].name)
    return f"KSQL_COL_{index}"


def _make_distinct(found: list[_Selected]) -> None:
    names = [one.name.upper() for one in found]
    for one in found:
        if names.count(one.name.upper()) > 1 and one.item.alias is None and one.item.star is None:
            column = one.item.expression.find(exp.Column)
            if column is not None and column.table:
                one.name = f"{column.table}_{one.name}"
    names = [one.name.upper() for one in found]
    for one in found:
        if names.count(one.name.upper()) > 1:
            raise SqlError(f"Two columns are called {one.name}", one.item.place, "Write: … AS other_name")


def _check_grouped(work: _Compilation, expression: exp.Expression) -> None:
    column = ungrouped(expression, work.grouped, work.scope)
    if column is not None:
        raise SqlError(
            f"Column {column.name} is neither grouped by nor inside of an aggregate",
            place_of(column),
            f"Add it to GROUP BY, or write LATEST_BY_OFFSET({column.name}).",
        )


def _keys(work: _Compilation, selected: list[_Selected]) -> set[int]:
    """Which of the selected columns are the key of the result."""
    wanted = _wanted_keys(work)
    found: set[int] = set()
    for choices in wanted:
        index = next(
            (i for i, one in enumerate(selected) if one.sql in choices and not one.forced_value), None
        )
        if index is None:
            shown = " or ".join(choice.replace("`", "") for choice in choices)
            raise SqlError(
                f"The key of the result is not selected: {shown}",
                work.select.place,
                f"Add it to the columns: SELECT {choices[0].replace('`', '')}, …",
            )
        found.add(index)
    return found


def _wanted_keys(work: _Compilation) -> list[list[str]]:
    """For each column of the key the expressions that may be it."""
    select, scope = work.select, work.scope
    if work.aggregates:
        return [[sql] for sql in work.grouped]
    if select.partition_by:
        return [[scope.sql(node)] for node in select.partition_by]
    first = scope.entries[0]
    own = [[f"{quoted(first.alias)}.{quoted(column.name)}"] for column in first.source.key_columns]
    if not select.joins:
        return own
    left, right = on_sides(select.joins[0], scope)
    same_rows = select.joins[0].kind == "INNER"
    if work.over_tables:
        return [[*choices, *([right] if choices == [left] else [])] for choices in own]
    return [[left, right] if same_rows else [left]]


def _kind(work: _Compilation) -> SourceKind:
    return "TABLE" if work.aggregates or work.over_tables else "STREAM"


def _running(work: _Compilation) -> Running:
    if work.purpose == "pull":
        return "batch"
    if work.over_tables and (work.aggregates or work.select.joins):
        return "recompute"
    if not work.aggregates:
        return "append"
    final = work.select.emit == "FINAL" or (work.select.window and work.select.window.kind == "SESSION")
    return "append" if final else "update"


def _inputs(work: _Compilation, running: Running) -> tuple[Input, ...]:
    inputs = []
    watermarks = _watermarks(work, running)
    for index, entry in enumerate(work.scope.entries):
        reading: Reading = "stream"
        if running in ("batch", "recompute") or (index and entry.source.is_table):
            reading = "now"
        watermark = watermarks if reading == "stream" else None
        inputs.append(Input(f"__source_{index}", entry.source, reading, watermark))
    return tuple(inputs)


def _watermarks(work: _Compilation, running: Running) -> int | None:
    """How long late records are waited for. What is only shown at the end does not wait a day for them."""
    select = work.select
    if select.window is not None:
        default = DEFAULT_GRACE_MS if running == "update" else 0
        return default if select.window.grace_ms is None else select.window.grace_ms
    streams = [join for join in select.joins if join.before_ms is not None]
    if not streams:
        return None
    default = DEFAULT_GRACE_MS if all(join.kind == "INNER" for join in streams) else 0
    # A record that is as late as WITHIN allows still finds its partner.
    return max(
        max(join.before_ms or 0, join.after_ms or 0) + (default if join.grace_ms is None else join.grace_ms)
        for join in streams
    )


def _sql(work: _Compilation, selected: list[_Selected], running: Running) -> str:
    select, scope = work.select, work.scope
    columns = [f"{one.sql} AS {quoted(one.name)}" for one in selected]
    marked = work.purpose == "persist" and _kind(work) == "TABLE"
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


def _extra_columns(work: _Compilation) -> list[str]:
    entries = work.scope.entries
    # A table a stream is joined with does not change the time of the stream's records.
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
