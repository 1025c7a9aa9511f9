"""What the names in a SELECT stand for: the columns of its sources; an error says which there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from moldau.pipelines.sql.catalog.catalog import WINDOW_BOUNDS, Source
from moldau.pipelines.sql.compile.functions import is_aggregate, rewritten
from moldau.pipelines.sql.compile.operands import check_operands, with_moments
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.parse.dialect import place_of, spark_sql
from moldau.pipelines.sql.types import SqlType

#: The time of a record, which windows and joins go by; a column of every view.
TIME = "__time"
#: When the broker's log got the record, to order records of several partitions.
APPENDED = "__appended"
_ORDER = "__order"
ROWKEY = "ROWKEY"


@dataclass(frozen=True, slots=True)
class Entry:
    alias: str
    source: Source


class Scope:
    """The sources of one SELECT. `window` is the text of the window that rows are grouped by, if they are."""

    def __init__(self, entries: Sequence[Entry], window: str | None = None, by_offset: bool = True) -> None:
        self.entries = tuple(entries)
        self._window = window
        #: What ROWKEY is in a join.
        self.join_key: str | None = None
        first = _column(self.entries[0].alias, "ROWOFFSET")
        appended = _column(self.entries[0].alias, APPENDED)
        self._order = first if by_offset else exp.Anonymous(this="struct", expressions=[appended, first])

    def entry(self, alias: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.alias.upper() == alias.upper()), None)

    def resolved(self, expression: exp.Expression) -> exp.Expression:
        """An expression as Spark takes it, every column with its source in front."""
        check_operands(expression, self._type_of)
        holder = exp.Paren(this=rewritten(expression, exp.column(_ORDER)))
        with_moments(holder)
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
        """The key of a record by the name it once had, and still has in joins."""
        if self.join_key is not None:
            return exp.Var(this=self.join_key)
        keys = self.entries[0].source.key_columns
        if len(keys) != 1:
            names = ", ".join(key.name for key in keys) or "none"
            raise SqlError(f"{ROWKEY} is a key of one column", place, f"The columns of this key: {names}.")
        return _column(self.entries[0].alias, keys[0].name)

    def _type_of(self, column: exp.Column) -> SqlType | None:
        """The type of a column; None of what is inside of one, or not known."""
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
            raise SqlError(f"Column {parts[0]} is in several sources", place, f"Write {choices}.")
        return found[0][0], found[0][1], parts[1:]


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _unknown(name: str, entries: Sequence[Entry], place: Place | None) -> SqlError:
    known = [column.name for entry in entries for column in entry.source.columns]
    if name.upper() in WINDOW_BOUNDS:
        return SqlError(f"{name} is only there with a WINDOW, or in a windowed table", place)
    listed = f"Available are {', '.join(known)}." if known else "It has no columns."
    hint = " ".join(filter(None, (suggestion(name, known), listed)))
    return SqlError(f"There is no column {name}", place, hint)


def bound(window: str, name: str) -> exp.Expression:
    """WINDOWSTART or WINDOWEND of the window that rows are grouped by."""
    side = "start" if name.upper() == "WINDOWSTART" else "end"
    millis = f"unix_millis({window}.{side})"
    if side == "end" and window.startswith("session_window"):
        # A session ends with its last record in Kafka, and a gap later in Spark.
        gap = window.rpartition("'")[0].rpartition("'")[2].split(" ")[0]
        millis = f"{millis} - {gap}"
    return exp.Var(this=f"({millis})")


def has_aggregate(expression: exp.Expression) -> bool:
    return any(is_aggregate(node) for node in expression.find_all(exp.Anonymous))


def ungrouped(expression: exp.Expression, grouped: Sequence[str], scope: Scope) -> exp.Column | None:
    """The first column that is neither grouped by nor inside of an aggregate."""
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
