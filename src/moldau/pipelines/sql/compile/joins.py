"""Joins: checks which kinds are supported, and writes them in Spark SQL."""

from __future__ import annotations

from sqlglot import exp

from moldau.pipelines.sql.compile.scope import TIME, Entry, Scope
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.dialect import quoted
from moldau.pipelines.sql.parse.statements import Join, Select


def joins_sql(select: Select, scope: Scope) -> str:
    """Return the FROM clause."""
    parts = [f"`__source_0` AS {quoted(scope.entries[0].alias)}"]
    for index, join in enumerate(select.joins, 1):
        kind = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}[join.kind]
        conditions = [f"({scope.sql(join.on)})", *_near(join, scope.entries[0], scope.entries[index])]
        view = f"`__source_{index}` AS {quoted(scope.entries[index].alias)}"
        parts.append(f"{kind} {view} ON {' AND '.join(conditions)}")
    return "\n".join(parts)


def _near(join: Join, left: Entry, right: Entry) -> list[str]:
    """Return the conditions of WITHIN on the timestamps of both sides."""
    if join.before_ms is None or join.after_ms is None:
        return []
    mine, other = f"{quoted(left.alias)}.{quoted(TIME)}", f"{quoted(right.alias)}.{quoted(TIME)}"
    return [
        f"{other} >= {mine} - {_interval(join.before_ms)}",
        f"{other} <= {mine} + {_interval(join.after_ms)}",
    ]


def _interval(milliseconds: int) -> str:
    return f"INTERVAL '{milliseconds // 1000}.{milliseconds % 1000:03}' SECOND"


def check_joins(select: Select, scope: Scope) -> None:
    for index, join in enumerate(select.joins, 1):
        _check(join, scope, index)


def _check(join: Join, scope: Scope, index: int) -> None:
    left, right = scope.entries[0].source, scope.entries[index].source
    on_sides(join, scope)
    if left.is_table and not right.is_table:
        raise SqlError(
            "A table cannot be joined with a stream",
            join.place,
            f"Put the stream first: FROM {right.name} JOIN {left.name} ON …",
        )
    if not left.is_table and not right.is_table:
        if join.before_ms is None:
            raise SqlError(
                "A stream-stream join needs WITHIN",
                join.place,
                f"Write: JOIN {right.name} WITHIN 1 HOUR ON …",
            )
        if index > 1:
            raise SqlError(
                "A query can join at most two streams",
                join.place,
                "Create a stream of the first join: CREATE STREAM … AS SELECT …",
            )
        return
    if join.before_ms is not None:
        raise SqlError("WITHIN is only for stream-stream joins", join.place, "Remove WITHIN.")
    if not left.is_table and join.kind in ("RIGHT", "FULL"):
        raise SqlError(
            f"A stream-table join cannot be a {join.kind} JOIN",
            join.place,
            "Only records of the stream trigger the join: use JOIN or LEFT JOIN.",
        )


def join_key(select: Select, scope: Scope) -> str:
    """Return the key of the first join, ROWKEY."""
    left, right = on_sides(select.joins[0], scope)
    return {"FULL": f"coalesce({left}, {right})", "RIGHT": right}.get(select.joins[0].kind, left)


def on_sides(join: Join, scope: Scope) -> tuple[str, str]:
    """Return the two sides of the first equality of ON: that of the earlier sources, and that of the joined
    one."""
    new = join.source.alias
    for equality in join.on.find_all(exp.EQ):
        sides = [(scope.sql(side), _sources(side, scope)) for side in (equality.this, equality.expression)]
        for (mine, owners), (other, others) in (sides, sides[::-1]):
            if others == {new.upper()} and owners and new.upper() not in owners:
                return mine, other
    raise SqlError(
        "ON must compare a column of each side for equality",
        join.place,
        f"Write: ON {scope.entries[0].alias}.column = {new}.column",
    )


def _sources(side: exp.Expression, scope: Scope) -> set[str]:
    resolved = scope.resolved(side)
    return {column.table.upper() for column in resolved.find_all(exp.Column)}
