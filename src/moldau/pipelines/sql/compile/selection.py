"""The columns of a SELECT: their names, and which of them are the key of the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from moldau.pipelines.sql.compile.functions import name_of
from moldau.pipelines.sql.compile.joins import on_sides
from moldau.pipelines.sql.compile.plan import Purpose
from moldau.pipelines.sql.compile.scope import ROWKEY, Scope, ungrouped
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.dialect import place_of, quoted
from moldau.pipelines.sql.parse.statements import Item, Select, SourceKind


@dataclass
class Selected:
    """A selected expression, with its name in the result."""

    name: str
    sql: str
    item: Item
    forced_value: bool = False


@dataclass
class Compilation:
    """A SELECT being compiled."""

    select: Select
    purpose: Purpose
    scope: Scope
    #: The Spark SQL of the window that rows are grouped by.
    window: str | None
    grouped: list[str] = field(default_factory=list)
    aggregates: bool = False

    @property
    def over_tables(self) -> bool:
        return self.scope.entries[0].source.is_table

    @property
    def kind(self) -> SourceKind:
        return "TABLE" if self.aggregates or self.over_tables else "STREAM"


def selected_columns(work: Compilation) -> list[Selected]:
    found: list[Selected] = []
    for item in work.select.items:
        if item.star is not None:
            found += _expanded(work, item)
            continue
        if work.aggregates:
            _check_grouped(work, item.expression)
        as_value = name_of(item.expression) == "AS_VALUE"
        name = item.alias or _default_name(item.expression, len(found))
        found.append(Selected(name, work.scope.sql(item.expression), item, as_value))
    if work.select.having is not None:
        _check_grouped(work, work.select.having)
    _make_distinct(found)
    return found


def _expanded(work: Compilation, item: Item) -> list[Selected]:
    """Expand `*` to the columns, prefixed with the name of their source if there are several sources."""
    entries = [entry for entry in work.scope.entries if item.star in ("*", entry.alias)]
    if not entries:
        raise SqlError(f"Unknown source {item.star}", item.place)
    if work.aggregates:
        raise SqlError("* is not allowed with GROUP BY", item.place, "Name the columns of GROUP BY.")
    found = []
    for entry in entries:
        source = entry.source
        bounds = ("WINDOWSTART", "WINDOWEND") if source.window and work.purpose != "persist" else ()
        keys = [column.name for column in source.key_columns]
        others = [column.name for column in source.columns if column.role != "KEY"]
        for name in (*keys, *bounds, *others):
            shown = f"{entry.alias}_{name}" if len(entries) > 1 else name
            sql = f"{quoted(entry.alias)}.{quoted(name)}"
            found.append(Selected(shown, sql, item))
    return found


def _default_name(expression: exp.Expression, index: int) -> str:
    if isinstance(expression, exp.Column | exp.Dot):
        return expression.name
    if name_of(expression) == "AS_VALUE" and isinstance(expression.expressions[0], exp.Column):
        return str(expression.expressions[0].name)
    return f"KSQL_COL_{index}"


def _make_distinct(found: list[Selected]) -> None:
    names = [one.name.upper() for one in found]
    for one in found:
        if names.count(one.name.upper()) > 1 and one.item.alias is None and one.item.star is None:
            column = one.item.expression.find(exp.Column)
            if column is not None and column.table:
                one.name = f"{column.table}_{one.name}"
    names = [one.name.upper() for one in found]
    for one in found:
        if names.count(one.name.upper()) > 1:
            raise SqlError(f"Duplicate column name {one.name}", one.item.place, "Write: … AS other_name")


def _check_grouped(work: Compilation, expression: exp.Expression) -> None:
    column = ungrouped(expression, work.grouped, work.scope)
    if column is not None:
        raise SqlError(
            f"Column {column.name} must be in GROUP BY or inside an aggregate",
            place_of(column),
            f"Add it to GROUP BY, or write LATEST_BY_OFFSET({column.name}).",
        )


def key_positions(work: Compilation, selected: list[Selected]) -> set[int]:
    """Return the positions of the selected columns that are the key of the result."""
    wanted = _wanted_keys(work)
    found: set[int] = set()
    for choices in wanted:
        index = next(
            (i for i, one in enumerate(selected) if one.sql in choices and not one.forced_value), None
        )
        if index is None:
            shown = [_shown(choice, work) for choice in dict.fromkeys(choices)]
            raise SqlError(
                f"The SELECT must include the key of the result: {' or '.join(shown)}",
                work.select.place,
                f"Add it: SELECT {shown[0]}, …",
            )
        if work.scope.join_key is not None and work.scope.join_key in choices:
            # Use the side that every record has, whichever was selected.
            selected[index].sql = work.scope.join_key
        found.add(index)
    return found


def _shown(key: str, work: Compilation) -> str:
    """Return an expression as users write it; the key of a FULL JOIN is ROWKEY."""
    return ROWKEY if key == work.scope.join_key and "(" in key else key.replace("`", "")


def _wanted_keys(work: Compilation) -> list[list[str]]:
    """Return the possible expressions of each key column."""
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
    both = [scope.join_key or left]
    if select.joins[0].kind != "FULL":
        both = [left, right]
    if not work.over_tables:
        return [both]
    return [both if choices == [left] else choices for choices in own]
