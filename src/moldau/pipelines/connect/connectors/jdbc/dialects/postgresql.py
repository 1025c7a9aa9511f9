"""PostgreSQL, by psycopg."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

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

#: Parameters of Java's driver and those of libpq. As in Java, `ssl=true` without `sslmode` verifies.
_OPTIONS: Final = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "connectTimeout": "connect_timeout",
    "ApplicationName": "application_name",
    "options": "options",
    "gssEncMode": "gssencmode",
    "channelBinding": "channel_binding",
    "targetServerType": "target_session_attrs",
}
_SERVER_TYPES: Final = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "preferSecondary": "prefer-standby",
    "preferSlave": "prefer-standby",
}
_OTHERS: Final = {"user", "password", "ssl", "currentSchema", "tcpKeepAlive", "socketTimeout"}

_TYPES: Final = {
    "bool": ColumnType.BOOLEAN,
    "int2": ColumnType.INT16,
    "int4": ColumnType.INT32,
    "int8": ColumnType.INT64,
    "oid": ColumnType.INT64,
    "float4": ColumnType.FLOAT32,
    "float8": ColumnType.FLOAT64,
    "numeric": ColumnType.NUMERIC,
    "bytea": ColumnType.BYTES,
    "date": ColumnType.DATE,
    "time": ColumnType.TIME,
    "timestamp": ColumnType.TIMESTAMP,
    "timestamptz": ColumnType.TIMESTAMP,
}
#: The name of sessions that only read.
_READER: Final = "moldau connect source"
#: Types that are read as their text.
_AS_TEXT: Final = (
    *("json", "jsonb", "uuid", "inet", "cidr", "interval", "timetz", "int4range", "int8range", "numrange"),
    *("tsrange", "tstzrange", "daterange", "int4multirange", "int8multirange", "nummultirange"),
    *("tsmultirange", "tstzmultirange", "datemultirange"),
)
_TABLES: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY(?::text[]) AND NOT c.relispartition
AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND n.nspname !~ '^pg_(toast|temp_|toast_temp_)' ORDER BY 1, 2
"""
_KINDS: Final = {"TABLE": ["r", "p"], "VIEW": ["v", "m"]}
_COLUMNS: Final = """
SELECT a.attname, COALESCE(b.typname, t.typname), NOT (a.attnotnull OR t.typnotnull),
  CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END,
  COALESCE(a.attnum = ANY(k.indkey), false)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_index k ON k.indrelid = a.attrelid AND k.indisprimary
WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
#: Sessions of users in this database: a transaction has written if it holds the lock of its own id.
_TRANSACTIONS: Final = """
WITH l AS MATERIALIZED (SELECT locktype, virtualxid, virtualtransaction, pid FROM pg_locks
  WHERE locktype IN ('virtualxid', 'transactionid') AND mode = 'ExclusiveLock' AND granted)
SELECT v.virtualtransaction, EXISTS (SELECT FROM l x
  WHERE x.locktype = 'transactionid' AND x.virtualtransaction = v.virtualtransaction)
FROM l v JOIN pg_stat_activity a ON a.pid = v.pid
WHERE v.locktype = 'virtualxid' AND v.virtualxid = v.virtualtransaction AND v.pid <> pg_backend_pid()
  AND a.datname = current_database() AND a.usesysid IS NOT NULL AND a.application_name IS DISTINCT FROM ?
UNION ALL SELECT 'prepared:' || gid, true FROM pg_prepared_xacts WHERE database = current_database()
"""


class PostgreSqlDialect(Dialect):
    name = "PostgreSqlDatabaseDialect"

    def connect(
        self, target: Target, user: str | None, password: str | None, *, reading: bool = False
    ) -> Connection:
        psycopg = _driver()
        settings = connection_settings(target, user, password)
        settings.setdefault("application_name", _READER if reading else "moldau connect")
        connection = psycopg.connect(**settings)
        # Every statement sees what was committed before it, whatever the server's default is.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        from psycopg.types.string import TextLoader

        for name in _AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
            found = connection.adapters.types.get(name)
            if found is not None and found.array_oid:
                connection.adapters.register_loader(found.array_oid, TextLoader)
        self.execute(connection, "SELECT set_config('TimeZone', ?, false)", [str(self.zone)])
        if schema := target.options.get("currentSchema"):
            self.execute(connection, "SELECT set_config('search_path', ?, false)", [schema])
        connection.commit()
        return connection

    def errors(self) -> type[Exception]:
        errors: type[Exception] = _driver().Error
        return errors

    def is_transient(self, error: Exception) -> bool:
        psycopg = _driver()
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def stream(
        self, connection: Connection, sql: str, parameters: Sequence[Any], size: int
    ) -> Generator[Sequence[Row], None, None]:
        with connection.cursor(name="moldau_source") as cursor:
            cursor.execute(self.native(sql, parameters), tuple(parameters) or None)
            while rows := cursor.fetchmany(size):
                yield rows

    def table_id(self, qualifier: str | None, table: str) -> TableId:
        return TableId(None, qualifier, table)

    def tables(self, connection: Connection, types: Sequence[str]) -> list[TableId]:
        kinds = [kind for each in types for kind in _KINDS.get(each, [])]
        rows = self.execute(connection, _TABLES, [kinds])
        return [TableId(None, schema, table) for schema, table in rows]

    def columns(self, connection: Connection, table: TableId) -> list[Column]:
        rows = self.execute(connection, _COLUMNS, [self.qualified(table)])
        return [
            replace(_column(name, type_name, modifier), nullable=nullable, primary_key=key)
            for name, type_name, nullable, modifier, key in rows
        ]

    def query_columns(self, connection: Connection, query: str) -> list[Column]:
        cursor = connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM ({query}) AS query LIMIT 0")
            types = connection.adapters.types
            found = []
            for each in cursor.description or ():
                info = types.get(each.type_code)
                is_array = info is not None and info.oid != each.type_code
                name = "text" if info is None else f"_{info.name}" if is_array else info.name
                precision, scale = each.precision, each.scale
                column = _column(each.name, name, -1)
                if column.type is ColumnType.NUMERIC and precision is not None:
                    column = replace(column, precision=precision, scale=scale)
                found.append(column)
            return found
        finally:
            cursor.close()

    def now(self, connection: Connection) -> datetime:
        found: datetime = self.execute(connection, "SELECT clock_timestamp()")[0][0]
        return found

    def open_transactions(self, connection: Connection) -> Mapping[str, bool] | None:
        if self.execute(connection, "SELECT pg_is_in_recovery()")[0][0]:
            # A standby does not show the transactions of its primary.
            return None
        rows = self.execute(connection, _TRANSACTIONS, [_READER])
        return {str(token): bool(has_written) for token, has_written in rows}

    def upsert(self, table: TableId, keys: Sequence[str], others: Sequence[str]) -> str:
        insert = self.insert(table, [*keys, *others])
        conflict = ",".join(self.identifier(each) for each in keys)
        if not others:
            return f"{insert} ON CONFLICT ({conflict}) DO NOTHING"
        changes = ",".join(f"{self.identifier(each)}=EXCLUDED.{self.identifier(each)}" for each in others)
        return f"{insert} ON CONFLICT ({conflict}) DO UPDATE SET {changes}"

    def sql_type(self, schema: Schema, *, primary_key: bool) -> str:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name]
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return f"{self.sql_type(schema.value_schema, primary_key=False)}[]"
        found = _SQL_TYPES.get(schema.type)
        if found is None:
            raise ConnectError(f"A value of the type {schema.type} has no column type in PostgreSQL")
        return found

    def binder(self, schema: Schema) -> Callable[[Any], Any] | None:
        if schema.name == logical.TIMESTAMP_NAME:
            zone = self.zone
            return lambda value: value.astimezone(zone).replace(tzinfo=None)
        if schema.name == logical.DATE_NAME:
            return datetime.date
        if schema.name == logical.TIME_NAME:
            return datetime.time
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            bind = self.binder(schema.value_schema)
            return None if bind is None else lambda values: [bind(each) for each in values]
        return None

    def _literal(self, schema: Schema) -> str:
        if schema.type is Type.BYTES and isinstance(schema.default, bytes):
            return f"'\\x{schema.default.hex()}'::bytea"
        return super()._literal(schema)


_LOGICAL: Final = {
    logical.DECIMAL_NAME: "DECIMAL",
    logical.DATE_NAME: "DATE",
    logical.TIME_NAME: "TIME",
    logical.TIMESTAMP_NAME: "TIMESTAMP",
}
_SQL_TYPES: Final = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
}


def connection_settings(target: Target, user: str | None, password: str | None) -> dict[str, Any]:
    """Return the arguments of psycopg for a URL and the settings of a connector."""
    options = target.options
    log_unused(target, _OTHERS | _OPTIONS.keys())
    settings: dict[str, Any] = {
        "host": ",".join(host for host, _ in target.hosts),
        "port": ",".join(str(port) for _, port in target.hosts),
        "dbname": target.database or user or options.get("user"),
        "user": user or options.get("user"),
        "password": password or options.get("password"),
        "connect_timeout": 10,
    }
    if options.get("ssl", "false").lower() == "true":
        settings["sslmode"] = "verify-full"
    for name, value in options.items():
        if name == "targetServerType":
            settings["target_session_attrs"] = _SERVER_TYPES.get(value, value)
        elif name in _OPTIONS:
            settings[_OPTIONS[name]] = value
    return {name: value for name, value in settings.items() if value is not None}


def _column(name: str, type_name: str, modifier: int) -> Column:
    if type_name.startswith("_"):
        element = _column("", type_name[1:], modifier)
        if element.type is ColumnType.STRING and type_name[1:] in _AS_TEXT:
            return Column(name, ColumnType.STRING)
        return Column(name, ColumnType.ARRAY, element=element)
    found = _TYPES.get(type_name, ColumnType.STRING)
    if found is ColumnType.NUMERIC and modifier >= 4:
        scale = (modifier - 4) & 0x7FF
        scale -= 0x800 if scale >= 0x400 else 0
        return Column(name, found, precision=(modifier - 4) >> 16 & 0xFFFF, scale=scale)
    return Column(name, found, zoned=type_name == "timestamptz")


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingDriver("PostgreSQL needs the package psycopg: pip install 'moldau[jdbc]'") from error
    return psycopg
