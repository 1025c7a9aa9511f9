"""SQLite, by Python's standard library.

SQLite has no types for time: values of columns declared as DATE, TIME, DATETIME or TIMESTAMP are milliseconds
since the epoch, as Java's driver writes them, or ISO 8601 text. One transaction writes at a time, so rows are
committed in the order of their ids.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from moldau.pipelines.connect.connectors.jdbc.dialects.interface import (
    Connection,
    Dialect,
    Row,
    log_unused,
)
from moldau.pipelines.connect.connectors.jdbc.model import Column, ColumnType, TableId
from moldau.pipelines.connect.connectors.jdbc.urls import Target
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema, Type

_BUSY_TIMEOUT_S: Final = 10.0
_FORMAT: Final = "%Y-%m-%d %H:%M:%f"
#: Parts of declared types, in the order in which they are looked for.
_TYPES: Final = (
    ("BOOL", ColumnType.BOOLEAN),
    ("TINYINT", ColumnType.INT8),
    ("SMALLINT", ColumnType.INT16),
    ("INT2", ColumnType.INT16),
    ("BIGINT", ColumnType.INT64),
    ("INT8", ColumnType.INT64),
    ("INT", ColumnType.INT64),
    ("TIMESTAMP", ColumnType.TIMESTAMP),
    ("DATETIME", ColumnType.TIMESTAMP),
    ("DATE", ColumnType.DATE),
    ("TIME", ColumnType.TIME),
    ("CHAR", ColumnType.STRING),
    ("CLOB", ColumnType.STRING),
    ("TEXT", ColumnType.STRING),
    ("BLOB", ColumnType.BYTES),
    ("REAL", ColumnType.FLOAT64),
    ("FLOA", ColumnType.FLOAT64),
    ("DOUB", ColumnType.FLOAT64),
)
_NUMERIC: Final = re.compile(r"\s*(?:NUMERIC|DECIMAL|NUMBER)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.I)


class SqliteDialect(Dialect):
    name = "SqliteDatabaseDialect"
    parameter = "?"
    max_parameters = 900

    def connect(
        self, target: Target, user: str | None, password: str | None, *, reading: bool = False
    ) -> Connection:
        log_unused(target, set())
        path = target.database
        return sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, uri=path.startswith("file:"))

    def errors(self) -> type[Exception]:
        return sqlite3.Error

    def is_transient(self, error: Exception) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        transient = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}
        return code is not None and code & 0xFF in transient

    def stream(
        self, connection: Connection, sql: str, parameters: Sequence[Any], size: int
    ) -> Generator[Sequence[Row], None, None]:
        cursor = connection.cursor()
        try:
            cursor.execute(sql, tuple(parameters))
            while rows := cursor.fetchmany(size):
                yield rows
        finally:
            cursor.close()

    def execute(self, connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return list(connection.execute(sql, tuple(parameters)).fetchall())

    def table_id(self, qualifier: str | None, table: str) -> TableId:
        return TableId(None, qualifier, table)

    def tables(self, connection: Connection, types: Sequence[str]) -> list[TableId]:
        kinds = {each.lower() for each in types}
        rows = self.execute(
            connection, "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
        return sorted(TableId(None, None, name) for kind, name in rows if kind in kinds)

    def columns(self, connection: Connection, table: TableId) -> list[Column]:
        rows = self.execute(connection, f"PRAGMA table_info({self.identifier(table.table)})")
        # A rowid table's only INTEGER key is never null, though it need not be declared so.
        keys = sum(1 for row in rows if row[5])
        return [
            _column(name, declared, bool(not_null) or bool(key and keys == 1), bool(key))
            for _, name, declared, not_null, _, key in rows
        ]

    def query_columns(self, connection: Connection, query: str) -> list[Column]:
        """Ask a view on the query: results of expressions have no type, and are read as text."""
        view = self.identifier("moldau_query")
        self.execute(connection, f"CREATE TEMP VIEW {view} AS {query}")
        try:
            rows = self.execute(connection, f"PRAGMA table_info({view})")
        finally:
            self.execute(connection, f"DROP VIEW {view}")
        return [_column(name, declared, False, False) for _, name, declared, *_ in rows]

    def now(self, connection: Connection) -> datetime:
        return datetime.now(UTC)

    def timestamp_expression(self, columns: Sequence[str]) -> str:
        """Return milliseconds precision as text, whichever way the values are stored."""
        found = []
        for each in columns:
            name = self.identifier(each)
            found.append(
                f"CASE typeof({name}) WHEN 'integer' "
                f"THEN strftime('{_FORMAT}', {name} / 1000.0, 'unixepoch') "
                f"ELSE strftime('{_FORMAT}', {name}) END"
            )
        return found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})"

    def timestamp_parameter(self, instant: datetime, *, zoned: bool) -> str:
        local = instant.astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d}"

    def instant(self, value: Any) -> datetime:
        return parse_instant(value, self.zone)

    def upsert(self, table: TableId, keys: Sequence[str], others: Sequence[str]) -> str:
        insert = self.insert(table, [*keys, *others])
        conflict = ",".join(self.identifier(each) for each in keys)
        if not others:
            return f"{insert} ON CONFLICT ({conflict}) DO NOTHING"
        changes = ",".join(f"{self.identifier(each)}=excluded.{self.identifier(each)}" for each in others)
        return f"{insert} ON CONFLICT ({conflict}) DO UPDATE SET {changes}"

    def add_columns(self, table: TableId, columns: dict[str, Schema]) -> list[str]:  # type: ignore[override]
        """SQLite adds one column per statement."""
        return [
            super(SqliteDialect, self).add_columns(table, {name: each})[0] for name, each in columns.items()
        ]

    def sql_type(self, schema: Schema, *, primary_key: bool) -> str:
        if schema.name in (
            logical.DECIMAL_NAME,
            logical.DATE_NAME,
            logical.TIME_NAME,
            logical.TIMESTAMP_NAME,
        ):
            return "NUMERIC"
        found = _SQL_TYPES.get(schema.type)
        if found is None:
            raise ConnectError(f"A value of the type {schema.type} has no column type in SQLite")
        return found

    def binder(self, schema: Schema) -> Callable[[Any], Any] | None:
        if schema.name == logical.DECIMAL_NAME:
            return str
        if schema.name in (logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME):
            return logical.millis_of
        return None


_SQL_TYPES: Final = {
    Type.INT8: "INTEGER",
    Type.INT16: "INTEGER",
    Type.INT32: "INTEGER",
    Type.INT64: "INTEGER",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "REAL",
    Type.BOOLEAN: "INTEGER",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
}


def parse_instant(value: Any, zone: Any) -> datetime:
    """Return the instant of a stored time: milliseconds since the epoch, or ISO 8601 text."""
    if isinstance(value, int):
        return logical.datetime_of(value)
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ConnectError(f"{value!r} is not a timestamp: expected milliseconds or ISO 8601 text") from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _column(name: str, declared: str, not_null: bool, key: bool) -> Column:
    if match := _NUMERIC.match(declared):
        precision, scale = match.groups()
        digits = int(scale or 0) if precision else None
        return Column(
            name,
            ColumnType.NUMERIC,
            not not_null,
            precision=int(precision or 0),
            scale=digits,
            primary_key=key,
        )
    upper = declared.upper()
    found = next((kind for part, kind in _TYPES if part in upper), ColumnType.STRING)
    return Column(name, found, not not_null, primary_key=key)
