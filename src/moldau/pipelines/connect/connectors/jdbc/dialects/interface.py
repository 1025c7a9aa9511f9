"""The interface of a dialect: everything that differs between databases.

Connections are DB-API connections outside of auto-commit. SQL is written with `?` for values; `execute` and
`stream` translate it to the driver's style, so that a percent sign in a user's query stays one. Identifiers
are always quoted, values are only ever parameters.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from moldau.pipelines.connect.connectors.jdbc.model import Column, TableId, split_name
from moldau.pipelines.connect.connectors.jdbc.urls import Target
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema

logger = logging.getLogger(__name__)

Row = Sequence[Any]
#: A DB-API connection or cursor.
Connection = Any


class MissingDriver(ConnectError):
    """The driver of a database is not installed."""


class Dialect(ABC):
    #: The name in Confluent's connector.
    name: ClassVar[str]
    quote: ClassVar[str] = '"'
    parameter: ClassVar[str] = "%s"
    #: The most parameters of one statement.
    max_parameters: ClassVar[int] = 60_000

    def __init__(self, *, quoted: bool = True, zone: ZoneInfo | None = None) -> None:
        self.quoted = quoted
        #: The time zone of values without one.
        self.zone = zone or ZoneInfo("UTC")

    # Connections.

    @abstractmethod
    def connect(
        self, target: Target, user: str | None, password: str | None, *, reading: bool = False
    ) -> Connection:
        """Connect; with `reading`, the transactions of the session are not waited for by other sources."""

    @abstractmethod
    def errors(self) -> type[Exception]:
        """Return the base class of the driver's errors."""

    @abstractmethod
    def is_transient(self, error: Exception) -> bool:
        """Return whether the same statement may succeed later: the connection broke, or a deadlock."""

    # Statements.

    def native(self, sql: str, parameters: Sequence[Any]) -> str:
        """Return SQL with `?` in the driver's style; literals and quoted names are left as they are."""
        if self.parameter == "?" or not parameters:
            return sql
        return "".join(_translated(sql.replace("%", "%%"), self.parameter))

    def execute(self, connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return its rows."""
        cursor = connection.cursor()
        try:
            cursor.execute(self.native(sql, parameters), tuple(parameters) or None)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def execute_many(self, connection: Connection, sql: str, rows: Sequence[Row]) -> int:
        """Run a statement for each row; return the number of changed rows, or -1 if it is unknown."""
        cursor = connection.cursor()
        try:
            cursor.executemany(self.native(sql, rows[0]), rows)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    @abstractmethod
    def stream(
        self, connection: Connection, sql: str, parameters: Sequence[Any], size: int
    ) -> Generator[Sequence[Row], None, None]:
        """Run a query and yield its rows in batches of at most `size`, without holding all of them."""

    # Names.

    def identifier(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote if self.quoted else name

    def qualified(self, table: TableId) -> str:
        return ".".join(self.identifier(each) for each in table if each)

    def parse_table(self, name: str) -> TableId:
        """Return the table that a possibly qualified name means."""
        parts = split_name(name)
        if len(parts) > 2:
            raise ConnectError(f"The table name {name} has more than two parts")
        return self.table_id(parts[0] if len(parts) == 2 else None, parts[-1])

    @abstractmethod
    def table_id(self, qualifier: str | None, table: str) -> TableId: ...

    # Catalogs.

    @abstractmethod
    def tables(self, connection: Connection, types: Sequence[str]) -> list[TableId]:
        """Return the tables (`TABLE`) and views (`VIEW`) of the database, without those of the system."""

    @abstractmethod
    def columns(self, connection: Connection, table: TableId) -> list[Column]:
        """Return the columns of a table in their order; none if it does not exist."""

    @abstractmethod
    def query_columns(self, connection: Connection, query: str) -> list[Column]:
        """Return the columns of a query's result."""

    # Time and transactions.

    @abstractmethod
    def now(self, connection: Connection) -> datetime:
        """Return the time of the database, with a time zone."""

    def open_transactions(self, connection: Connection) -> Mapping[str, bool] | None:
        """Return the open transactions of other sessions, and whether each has written.

        None if the database does not tell: then rows that commit out of order are found only with
        `timestamp.delay.interval.ms`. Databases with one writer at a time have none.
        """
        return {}

    def timestamp_expression(self, columns: Sequence[str]) -> str:
        """Return the expression of a row's timestamp: the first of the columns that is not null."""
        names = ", ".join(self.identifier(each) for each in columns)
        return names if len(columns) == 1 else f"COALESCE({names})"

    def timestamp_parameter(self, instant: datetime, *, zoned: bool) -> Any:
        """Return an instant as a parameter to compare with `timestamp_expression`."""
        return instant if zoned else instant.astimezone(self.zone).replace(tzinfo=None)

    def instant(self, value: Any) -> datetime:
        """Return the instant of a value of `timestamp_expression`."""
        if not isinstance(value, datetime):
            raise ConnectError(f"A timestamp column has a value of the type {type(value).__name__}")
        return value if value.tzinfo else value.replace(tzinfo=self.zone)

    # Writing.

    @abstractmethod
    def sql_type(self, schema: Schema, *, primary_key: bool) -> str:
        """Return the type of a new column for values of a schema."""

    @abstractmethod
    def upsert(self, table: TableId, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return the statement that inserts a row, or updates the one with the same key."""

    @abstractmethod
    def binder(self, schema: Schema) -> Callable[[Any], Any] | None:
        """Return the function from Connect's values of a schema to parameters; None: they are the same."""

    def insert(self, table: TableId, columns: Sequence[str]) -> str:
        names = ",".join(self.identifier(each) for each in columns)
        return f"INSERT INTO {self.qualified(table)} ({names}) VALUES ({','.join('?' * len(columns))})"

    def update(self, table: TableId, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return the statement with the parameters `others`, then `keys`."""
        changes = ", ".join(f"{self.identifier(each)} = ?" for each in others)
        return f"UPDATE {self.qualified(table)} SET {changes} WHERE {self._equal(keys)}"

    def delete(self, table: TableId, keys: Sequence[str]) -> str:
        return f"DELETE FROM {self.qualified(table)} WHERE {self._equal(keys)}"

    def create_table(self, table: TableId, columns: Mapping[str, Schema], keys: Sequence[str]) -> str:
        lines = [self._definition(name, schema, name in keys) for name, schema in columns.items()]
        if keys:
            lines.append(f"PRIMARY KEY({','.join(self.identifier(each) for each in keys)})")
        return f"CREATE TABLE {self.qualified(table)} ({', '.join(lines)})"

    def add_columns(self, table: TableId, columns: Mapping[str, Schema]) -> list[str]:
        """Return the statements that add columns to a table."""
        added = [f"ADD COLUMN {self._definition(name, schema, False)}" for name, schema in columns.items()]
        return [f"ALTER TABLE {self.qualified(table)} {', '.join(added)}"]

    def _definition(self, name: str, schema: Schema, primary_key: bool) -> str:
        null = "NULL" if schema.optional and not primary_key else "NOT NULL"
        default = ""
        if schema.default is not None and not primary_key:
            default = f" DEFAULT {self._literal(schema)}"
            null = "NULL" if schema.optional else "NOT NULL"
        return f"{self.identifier(name)} {self.sql_type(schema, primary_key=primary_key)}{default} {null}"

    def _literal(self, schema: Schema) -> str:
        """Return a default value as SQL: definitions of columns take no parameters."""
        bind = self.binder(schema)
        value = bind(schema.default) if bind else schema.default
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int | float):
            return repr(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        return self._text_literal(str(value))

    def _text_literal(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def _equal(self, names: Sequence[str]) -> str:
        return " AND ".join(f"{self.identifier(each)} = ?" for each in names)


def log_unused(target: Target, used: set[str]) -> None:
    """Log the parameters of a URL that the driver does not have."""
    if unused := sorted(target.options.keys() - used):
        logger.warning("Parameters of %s have no effect: %s", target, ", ".join(unused))


def _translated(sql: str, parameter: str) -> Iterator[str]:
    """Yield SQL with each `?` outside of literals and quoted names replaced."""
    closing = ""
    for char in sql:
        if closing:
            closing = "" if char == closing else closing
        elif char in "'\"`":
            closing = char
        elif char == "?":
            yield parameter
            continue
        yield char
