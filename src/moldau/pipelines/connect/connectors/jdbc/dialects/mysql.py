"""MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from moldau.pipelines.connect.connectors.jdbc.dialects.interface import (
    Connection,
    Dialect,
    MissingDriver,
    Row,
    log_unused,
)
from moldau.pipelines.connect.connectors.jdbc.model import Column, ColumnType, TableId
from moldau.pipelines.connect.connectors.jdbc.urls import Target
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema, Type

#: Errors after which the statement can be repeated: server gone, too many connections, lock timeout,
#: deadlock.
_TRANSIENT: Final = {
    0,
    1021,
    1040,
    1053,
    1114,
    1158,
    1159,
    1160,
    1161,
    1205,
    1213,
    2003,
    2006,
    2013,
    2055,
    4031,
}
_OPTIONS: Final = {
    *("user", "password", "useSSL", "requireSSL", "sslMode", "serverSslCert", "connectTimeout"),
    *("socketTimeout", "characterEncoding", "useUnicode", "rewriteBatchedStatements", "serverTimezone"),
}
_SIGNED: Final = {
    "tinyint": (ColumnType.INT8, ColumnType.INT16),
    "smallint": (ColumnType.INT16, ColumnType.INT32),
    "mediumint": (ColumnType.INT32, ColumnType.INT64),
    "int": (ColumnType.INT32, ColumnType.INT64),
    "integer": (ColumnType.INT32, ColumnType.INT64),
}
_TYPES: Final = {
    "year": ColumnType.INT32,
    "float": ColumnType.FLOAT32,
    "double": ColumnType.FLOAT64,
    "binary": ColumnType.BYTES,
    "varbinary": ColumnType.BYTES,
    "tinyblob": ColumnType.BYTES,
    "blob": ColumnType.BYTES,
    "mediumblob": ColumnType.BYTES,
    "longblob": ColumnType.BYTES,
    "geometry": ColumnType.BYTES,
    "point": ColumnType.BYTES,
    "linestring": ColumnType.BYTES,
    "polygon": ColumnType.BYTES,
    "date": ColumnType.DATE,
    "time": ColumnType.TIME,
    "datetime": ColumnType.TIMESTAMP,
    "timestamp": ColumnType.TIMESTAMP,
}
_SYSTEM: Final = "('information_schema', 'mysql', 'performance_schema', 'sys')"
_TABLES: Final = f"""
SELECT table_schema, table_name FROM information_schema.tables WHERE table_type IN ({{types}})
AND table_schema NOT IN {_SYSTEM} AND (? = '' OR table_schema = ?) ORDER BY 1, 2
"""
_COLUMNS: Final = """
SELECT column_name, data_type, column_type, is_nullable, numeric_precision, numeric_scale, column_key
FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?
ORDER BY ordinal_position
"""
_KINDS: Final = {"TABLE": "'BASE TABLE'", "VIEW": "'VIEW'"}
#: A transaction's own id changes with its first write; thread and start identify it. The server fills this
#: table only if it was not read for 0.1 s: our own transaction, with this very statement, proves that the
#: answer is new.
_TRANSACTIONS: Final = """
SELECT /* {mark} */ CONCAT(trx_mysql_thread_id, '@', trx_started), trx_rows_modified > 0,
trx_mysql_thread_id = CONNECTION_ID(), COALESCE(trx_query LIKE '%{mark}%', 0)
FROM information_schema.innodb_trx WHERE trx_autocommit_non_locking = 0
"""
_REFRESH_ATTEMPTS: Final = 20
_REFRESH_S: Final = 0.11
_ACCESS_DENIED: Final = 1227


class MySqlDialect(Dialect):
    name = "MySqlDatabaseDialect"
    quote = "`"

    def __init__(self, **properties: Any) -> None:
        super().__init__(**properties)
        self._database = ""

    def connect(
        self, target: Target, user: str | None, password: str | None, *, reading: bool = False
    ) -> Connection:
        pymysql, options = _driver(), target.options
        log_unused(target, _OPTIONS)
        host, port = target.hosts[0]
        self._database = target.database
        connection = pymysql.connect(
            host=host,
            port=port,
            user=user or options.get("user"),
            password=password or options.get("password") or "",
            database=target.database or None,
            charset="utf8mb4",
            autocommit=reading,
            connect_timeout=max(1, int(options.get("connectTimeout", "10000")) // 1000),
            ssl=_tls(options),
        )
        self._set_zone(connection)
        return connection

    def errors(self) -> type[Exception]:
        errors: type[Exception] = _driver().Error
        return errors

    def is_transient(self, error: Exception) -> bool:
        code = error.args[0] if error.args else 0
        return isinstance(error, self.errors()) and code in _TRANSIENT

    def stream(
        self, connection: Connection, sql: str, parameters: Sequence[Any], size: int
    ) -> Generator[Sequence[Row], None, None]:
        from pymysql.cursors import SSCursor

        cursor = connection.cursor(SSCursor)
        try:
            cursor.execute(self.native(sql, parameters), tuple(parameters) or None)
            while rows := cursor.fetchmany(size):
                yield rows
        finally:
            cursor.close()

    def table_id(self, qualifier: str | None, table: str) -> TableId:
        return TableId(qualifier, None, table)

    def tables(self, connection: Connection, types: Sequence[str]) -> list[TableId]:
        kinds = ", ".join(_KINDS[each] for each in types if each in _KINDS) or "''"
        rows = self.execute(connection, _TABLES.format(types=kinds), [self._database, self._database])
        return [TableId(database, None, table) for database, table in rows]

    def columns(self, connection: Connection, table: TableId) -> list[Column]:
        rows = self.execute(connection, _COLUMNS, [table.catalog, table.table])
        return [
            _column(name, data_type, full_type, is_nullable == "YES", precision, scale, key == "PRI")
            for name, data_type, full_type, is_nullable, precision, scale, key in rows
        ]

    def query_columns(self, connection: Connection, query: str) -> list[Column]:
        from pymysql.constants import FLAG

        cursor = connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM ({query}) AS query LIMIT 0")
            return [
                _result_column(field, unsigned=bool(field.flags & FLAG.UNSIGNED))
                for field in cursor._result.fields or ()
            ]
        finally:
            cursor.close()

    def now(self, connection: Connection) -> datetime:
        found: datetime = self.execute(connection, "SELECT UTC_TIMESTAMP(6)")[0][0]
        return found.replace(tzinfo=UTC)

    def open_transactions(self, connection: Connection) -> Mapping[str, bool] | None:
        self.execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        try:
            for _ in range(_REFRESH_ATTEMPTS):
                rows = self.execute(connection, _TRANSACTIONS.format(mark=uuid4().hex))
                if any(is_ours and is_new for _, _, is_ours, is_new in rows):
                    return {str(token): bool(writes) for token, writes, is_ours, _ in rows if not is_ours}
                time.sleep(_REFRESH_S + random.uniform(0, _REFRESH_S))
        except self.errors() as error:
            if error.args and error.args[0] == _ACCESS_DENIED:
                return None
            raise
        finally:
            connection.rollback()
        raise _driver().err.OperationalError(1205, "information_schema.innodb_trx is read too often")

    def upsert(self, table: TableId, keys: Sequence[str], others: Sequence[str]) -> str:
        changed = others or keys
        changes = ",".join(f"{self.identifier(each)}=VALUES({self.identifier(each)})" for each in changed)
        return f"{self.insert(table, [*keys, *others])} ON DUPLICATE KEY UPDATE {changes}"

    def sql_type(self, schema: Schema, *, primary_key: bool) -> str:
        if schema.name == logical.DECIMAL_NAME:
            return f"DECIMAL(65,{min(30, max(0, logical.decimal_scale(schema)))})"
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name]
        if primary_key and schema.type in _KEY_TYPES:
            return _KEY_TYPES[schema.type]
        found = _SQL_TYPES.get(schema.type)
        if found is None:
            raise ConnectError(f"A value of the type {schema.type} has no column type in MySQL")
        return found

    def binder(self, schema: Schema) -> Callable[[Any], Any] | None:
        if schema.name == logical.TIMESTAMP_NAME:
            zone = self.zone
            return lambda value: value.astimezone(zone).replace(tzinfo=None)
        if schema.name == logical.DATE_NAME:
            return datetime.date
        if schema.name == logical.TIME_NAME:
            return datetime.time
        return None

    def _set_zone(self, connection: Connection) -> None:
        """Read and write TIMESTAMP columns in `db.timezone`; a server without names of zones knows UTC."""
        if str(self.zone) == "UTC":
            self.execute(connection, "SET time_zone = '+00:00'")
            return
        try:
            self.execute(connection, "SET time_zone = ?", [str(self.zone)])
        except self.errors() as error:
            raise ConnectError(
                f"The server does not know the time zone {self.zone}: load its tables of time zones, or "
                "set db.timezone to UTC"
            ) from error

    def _text_literal(self, text: str) -> str:
        return super()._text_literal(text.replace("\\", "\\\\"))


_LOGICAL: Final = {
    logical.DATE_NAME: "DATE",
    logical.TIME_NAME: "TIME(3)",
    logical.TIMESTAMP_NAME: "DATETIME(3)",
}
_SQL_TYPES: Final = {
    Type.INT8: "TINYINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "TINYINT",
    Type.STRING: "TEXT",
    Type.BYTES: "LONGBLOB",
}
_KEY_TYPES: Final = {Type.STRING: "VARCHAR(256)", Type.BYTES: "VARBINARY(1024)"}


def _column(
    name: str, data_type: str, full_type: str, nullable: bool, precision: Any, scale: Any, key: bool
) -> Column:
    data_type = data_type.lower()
    unsigned = "unsigned" in full_type.lower()
    if data_type in ("decimal", "numeric"):
        return Column(
            name,
            ColumnType.NUMERIC,
            nullable,
            precision=int(precision or 10),
            scale=int(scale or 0),
            primary_key=key,
        )
    if data_type == "bit":
        found = ColumnType.INT8 if int(precision or 1) == 1 else ColumnType.BYTES
        return Column(name, found, nullable, primary_key=key)
    if data_type == "bigint":
        if unsigned:
            return Column(name, ColumnType.NUMERIC, nullable, precision=20, scale=0, primary_key=key)
        return Column(name, ColumnType.INT64, nullable, primary_key=key)
    if data_type in _SIGNED:
        return Column(name, _SIGNED[data_type][unsigned], nullable, primary_key=key)
    return Column(name, _TYPES.get(data_type, ColumnType.STRING), nullable, primary_key=key)


def _result_column(field: Any, *, unsigned: bool) -> Column:
    """Return a column of a result by its type on the wire."""
    from pymysql.constants import FIELD_TYPE, FLAG

    names = {
        FIELD_TYPE.TINY: "tinyint",
        FIELD_TYPE.SHORT: "smallint",
        FIELD_TYPE.INT24: "mediumint",
        FIELD_TYPE.LONG: "int",
        FIELD_TYPE.LONGLONG: "bigint",
        FIELD_TYPE.FLOAT: "float",
        FIELD_TYPE.DOUBLE: "double",
        FIELD_TYPE.YEAR: "year",
        FIELD_TYPE.DATE: "date",
        FIELD_TYPE.TIME: "time",
        FIELD_TYPE.DATETIME: "datetime",
        FIELD_TYPE.TIMESTAMP: "timestamp",
        FIELD_TYPE.DECIMAL: "decimal",
        FIELD_TYPE.NEWDECIMAL: "decimal",
        FIELD_TYPE.BIT: "bit",
        FIELD_TYPE.GEOMETRY: "geometry",
    }
    binary = 63
    name = names.get(field.type_code)
    if name is None:
        is_text = field.charsetnr != binary or field.type_code == FIELD_TYPE.JSON
        name = "text" if is_text else "blob"
    precision = field.length - (field.scale > 0) - (not unsigned) if name == "decimal" else field.length
    nullable = not field.flags & FLAG.NOT_NULL
    return _column(field.name, name, "unsigned" if unsigned else "", nullable, precision, field.scale, False)


def _tls(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context for the parameters of Java's drivers; None without TLS."""
    mode = options.get("sslMode", "").upper().replace("-", "_")
    if not mode:
        enabled = any(options.get(each, "").lower() == "true" for each in ("useSSL", "requireSSL"))
        mode = "REQUIRED" if enabled else "DISABLED"
    if mode in ("DISABLED", "DISABLE", "PREFERRED"):
        return None
    context = ssl.create_default_context(cafile=options.get("serverSslCert"))
    if mode in ("REQUIRED", "TRUST"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif mode == "VERIFY_CA":
        context.check_hostname = False
    return context


def _driver() -> Any:
    try:
        import pymysql
    except ImportError as error:
        raise MissingDriver(
            "MySQL and MariaDB need the package PyMySQL: pip install 'moldau[jdbc]'"
        ) from error
    return pymysql
