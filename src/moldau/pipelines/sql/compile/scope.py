"""Resolves the names in a SELECT to columns of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from moldau.pipelines.sql.catalog.catalog import WINDOW_BOUNDS, Source
from moldau.pipelines.sql.compile.functions import is_aggregate, rewritten
from moldau.pipelines.sql.compile.operands import check_operands, convert_timestamps
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.parse.dialect import place_of, spark_sql
from moldau.pipelines.sql.types import SqlType

#: The column of every view with the timestamp that windows and joins use.
TIME = "__time"
#: The column with the record's own timestamp, which orders records of several partitions.
APPENDED = "__appended"
_ORDER = "__order"
ROWKEY = "ROWKEY"


@dataclass(frozen=True, slots=True)
class Entry:
    alias: str
    source: Source


class Scope:
    """The sources of one SELECT. `window` is the Spark SQL of the window that rows are grouped by, if any."""

    def __init__(self, entries: Sequence[Entry], window: str | None = None, by_offset: bool = True) -> None:
        self.entries = tuple(entries)
        self._window = window
        #: The Spark SQL of ROWKEY in a join.
        self.join_key: str | None = None
        first = _column(self.entries[0].alias, "ROWOFFSET")
        appended = _column(self.entries[0].alias, APPENDED)
        self._order = first if by_offset else exp.Anonymous(this="struct", expressions=[appended, first])

    def entry(self, alias: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.alias.upper() == alias.upper()), None)

    def resolved(self, expression: exp.Expression) -> exp.Expression:
        """Return an expression for Spark, with every column qualified by its source."""
        check_operands(expression, self._type_of)
        holder = exp.Paren(this=rewritten(expression, exp.column(_ORDER)))
        convert_timestamps(holder)
        for column in list(holder.find_all(exp.Column)):
            column.replace(self._resolved_column(column))
        result: exp.Expression = holder.this
        return result

    def sql(self, expression: exp.Expression) -> str:
        return spark_sql(self.resolved(expression))

    def _resolved_column(self, column: exp.Column) -> exp.Expression:
        parts = [part.name for part in column.parts]
        if parts == [_ORDER]:
            return self._order.copy()
        if self._window is not None and len(parts) == 1 and parts[0].upper() in WINDOW_BOUNDS:
            return bound(self._window, parts[0])
        if [part.upper() for part in parts] == [ROWKEY] and not self._has_column(ROWKEY):
            return self._row_key(place_of(column))
        owner, name, path = self._find(parts, place_of(column))
        node: exp.Expression = _column(owner.alias, name)
        for field in path:
            node = exp.Dot(this=node, expression=exp.to_identifier(field, quoted=True))
        return node

    def _has_column(self, name: str) -> bool:
        return any(entry.source.column(name) for entry in self.entries)

    def _row_key(self, place: Place | None) -> exp.Expression:
        """Resolve ROWKEY, ksqlDB's former name of the key, which joins still use."""
        if self.join_key is not None:
            return exp.Var(this=self.join_key)
        keys = self.entries[0].source.key_columns
        if len(keys) != 1:
            names = ", ".join(key.name for key in keys) or "none"
            raise SqlError(f"{ROWKEY} needs a key with one column", place, f"The key columns are: {names}.")
        return _column(self.entries[0].alias, keys[0].name)

    def _type_of(self, column: exp.Column) -> SqlType | None:
        """Return the type of a column; None for a field of a struct, or if the column is unknown."""
        parts = [part.name for part in column.parts]
        for entry in self.entries:
            inner = parts[1:] if len(parts) > 1 and parts[0].upper() == entry.alias.upper() else parts
            for known in entry.source.columns:
                if len(inner) == 1 and known.name.upper() == inner[0].upper():
                    return known.type
        return None

    def _find(self, parts: list[str], place: Place | None) -> tuple[Entry, str, list[str]]:
        entry = self.entry(parts[0])
        if entry is not None and len(parts) > 1:
            name = entry.source.column(parts[1])
            if name is not None:
                return entry, name, parts[2:]
            if not any(other.source.column(parts[0]) for other in self.entries):
                raise _unknown(parts[1], [entry], place)
        found = [(other, name) for other in self.entries if (name := other.source.column(parts[0]))]
        if not found:
            raise _unknown(parts[0], self.entries, place)
        if len(found) > 1:
            choices = " or ".join(f"{other.alias}.{name}" for other, name in found)
            raise SqlError(f"Column {parts[0]} is ambiguous", place, f"Write {choices}.")
        return found[0][0], found[0][1], parts[1:]


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _unknown(name: str, entries: Sequence[Entry], place: Place | None) -> SqlError:
    known = [column.name for entry in entries for column in entry.source.columns]
    if name.upper() in WINDOW_BOUNDS:
        return SqlError(f"{name} needs a WINDOW clause or a windowed table", place)
    listed = f"The columns are {', '.join(known)}." if known else "The source has no columns."
    hint = " ".join(filter(None, (suggestion(name, known), listed)))
    return SqlError(f"Unknown column {name}", place, hint)


def bound(window: str, name: str) -> exp.Expression:
    """Return WINDOWSTART or WINDOWEND of the window that rows are grouped by."""
    side = "start" if name.upper() == "WINDOWSTART" else "end"
    millis = f"unix_millis({window}.{side})"
    if side == "end" and window.startswith("session_window"):
        # A session ends with its last record in Kafka Streams, and one gap later in Spark.
        gap = window.rpartition("'")[0].rpartition("'")[2].split(" ")[0]
        millis = f"{millis} - {gap}"
    return exp.Var(this=f"({millis})")


def has_aggregate(expression: exp.Expression) -> bool:
    return any(is_aggregate(node) for node in expression.find_all(exp.Anonymous))


def ungrouped(expression: exp.Expression, grouped: Sequence[str], scope: Scope) -> exp.Column | None:
    """Return the first column that is neither in GROUP BY nor inside an aggregate."""
    if is_aggregate(expression) or isinstance(expression, exp.Filter):
        return None
    if not isinstance(expression, exp.Lambda) and scope.sql(expression) in grouped:
        return None
    if isinstance(expression, exp.Column):
        return None if expression.name.upper() in WINDOW_BOUNDS else expression
    for child in expression.iter_expressions():
        if isinstance(child, exp.Expression) and not isinstance(child, exp.Identifier | exp.DataType):
            found = ungrouped(child, grouped, scope)
            if found is not None:
                return found
    return None
