"""Checks the types of operands: Spark would silently convert text that is not a number to null.

Only columns compared or combined with literals are checked; Spark finds all other errors. As in ksqlDB,
ROWTIME and the bounds of windows may be compared with a timestamp in quotes.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.dialect import place_of, spark_sql
from moldau.pipelines.sql.types import NUMBERS, SqlType

_COMPARING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CALCULATING = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_TIMESTAMPS = ("ROWTIME", "WINDOWSTART", "WINDOWEND")
TypeOf = Callable[[exp.Column], SqlType | None]


def check_operands(root: exp.Expression, type_of: TypeOf) -> None:
    for node in root.find_all(*_COMPARING, *_CALCULATING):
        sides = (node.this, node.expression)
        for mine, other in (sides, sides[::-1]):
            if isinstance(mine, exp.Column) and isinstance(other, exp.Literal | exp.Boolean):
                _check(mine, other, type_of(mine), comparing=isinstance(node, _COMPARING))


def _check(column: exp.Column, other: exp.Expression, kind: SqlType | None, *, comparing: bool) -> None:
    if kind is None or (comparing and is_timestamp(column)):
        return
    given = _kind(other)
    if _fit(kind, given, comparing=comparing):
        return
    shown = spark_sql(other)
    what = "be compared with" if comparing else "be combined with"
    hint = _hint(column.name, kind, other)
    raise SqlError(f"Column {column.name} of type {kind} cannot {what} {shown}", place_of(column), hint)


def _kind(node: exp.Expression) -> str:
    if isinstance(node, exp.Boolean):
        return "BOOLEAN"
    return "VARCHAR" if node.is_string else "DOUBLE"


def _fit(kind: SqlType, given: str, *, comparing: bool) -> bool:
    if kind.kind in NUMBERS:
        return given in NUMBERS
    if kind.kind in ("VARCHAR", "BOOLEAN"):
        return kind.kind == given and (comparing or kind.kind == "VARCHAR")
    # Spark parses the text.
    return kind.kind in ("TIMESTAMP", "DATE", "TIME", "BYTES") and given == "VARCHAR"


def _hint(name: str, kind: SqlType, other: exp.Expression) -> str:
    if kind.kind in NUMBERS and isinstance(other, exp.Literal):
        is_number = other.name.replace(".", "", 1).lstrip("-").isdigit()
        return (
            f"Write the number without quotes: {other.name}"
            if is_number
            else f"Write CAST({name} AS VARCHAR)."
        )
    if kind.kind == "VARCHAR" and isinstance(other, exp.Literal):
        return f"Write text in quotes: '{other.name}'"
    return "DESCRIBE shows the types of columns."


def is_timestamp(column: exp.Column) -> bool:
    return column.name.upper() in _TIMESTAMPS


def convert_timestamps(root: exp.Expression) -> None:
    """Convert timestamps in quotes that are compared with ROWTIME or window bounds to milliseconds."""
    for node in list(root.find_all(*_COMPARING)):
        for column, other in ((node.this, node.expression), (node.expression, node.this)):
            is_text = isinstance(other, exp.Literal) and other.is_string
            if isinstance(column, exp.Column) and is_timestamp(column) and is_text:
                timestamp = exp.Anonymous(this="to_timestamp", expressions=[other.copy()])
                other.replace(exp.Anonymous(this="unix_millis", expressions=[timestamp]))
