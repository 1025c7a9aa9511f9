"""What the server's catalog says: types, tables with their keys, the publication and the slot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moldau.pipelines.connect.connectors.cdc.pgoutput import RelationColumn
from moldau.pipelines.connect.connectors.cdc.replication import SESSION, parse_lsn
from moldau.pipelines.connect.connectors.cdc.settings import TableFilter
from moldau.pipelines.connect.connectors.cdc.types import TypeInfo
from moldau.pipelines.connect.data.errors import ConnectError

logger = logging.getLogger(__name__)

_TYPES: Final = """
SELECT t.oid, t.typname, CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END,
  CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE 0 END, t.typtypmod,
  ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM pg_type t WHERE t.typtype IN ('b', 'e', 'd', 'r')
"""
_TABLES: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND NOT pg_is_other_temp_schema(n.oid)
AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast' ORDER BY 1, 2
"""
_COLUMNS: Final = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated <> '',
  COALESCE(array_position(k.indkey::int2[], a.attnum), -1)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index k ON k.indrelid = c.oid AND k.indisprimary
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


class TableName(NamedTuple):
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    columns: tuple[RelationColumn, ...]
    not_null: frozenset[str]
    #: The columns of the primary key, in its order.
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotState:
    active_pid: int | None
    #: Where the stream begins; None for a slot that has none yet.
    confirmed_lsn: int | None
    is_lost: bool


class Catalog:
    """Queries on an own connection in auto-commit."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import psycopg

        options = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
        self._connection = psycopg.connect(**settings, autocommit=True, options=options)

    def close(self) -> None:
        self._connection.close()

    def types(self) -> dict[int, TypeInfo]:
        rows = self._connection.execute(_TYPES).fetchall()
        return {
            oid: TypeInfo(name, element, tuple(labels), base, modifier)
            for oid, name, element, base, modifier, labels in rows
        }

    def tables(self, chosen: TableFilter) -> list[TableName]:
        rows = self._connection.execute(_TABLES).fetchall()
        return [TableName(*row) for row in rows if chosen.captures(*row)]

    def definition(self, name: TableName) -> TableDefinition | None:
        """Return the columns that changes of a table carry; None if the table is gone."""
        rows = self._connection.execute(_COLUMNS, name).fetchall()
        if not rows:
            return None
        kept = [row for row in rows if not row[4]]
        key = sorted((position, column) for column, *_, position in kept if position >= 0)
        return TableDefinition(
            tuple(
                RelationColumn(column, oid, mod, position >= 0) for column, oid, mod, _, _, position in kept
            ),
            frozenset(row[0] for row in kept if row[3]),
            tuple(column for _, column in key),
        )

    def slot(self, name: str) -> SlotState | None:
        """Return the state of our slot; `ConnectError` if another database or plugin uses its name."""
        row = self._connection.execute(
            "SELECT plugin, database, active_pid, confirmed_flush_lsn::text, database = current_database(), "
            "COALESCE(wal_status = 'lost', false) FROM pg_replication_slots WHERE slot_name = %s",
            [name],
        ).fetchone()
        if row is None:
            return None
        plugin, database, pid, confirmed, is_ours, is_lost = row
        if plugin != "pgoutput" or not is_ours:
            raise ConnectError(
                f"The replication slot {name} belongs to the database {database} and the plugin {plugin}: "
                "choose another slot.name"
            )
        return SlotState(pid, None if confirmed is None else parse_lsn(confirmed), is_lost)

    def ensure_publication(self, name: str, mode: str, tables: Sequence[TableName]) -> None:
        """Create the publication, or extend a filtered one, as the mode says."""
        row = self._connection.execute(
            "SELECT puballtables FROM pg_publication WHERE pubname = %s", [name]
        ).fetchone()
        if row is None and mode == "disabled":
            raise ConnectError(
                f"The publication {name} is missing and publication.autocreate.mode is disabled; create it: "
                f"CREATE PUBLICATION {_quoted(name)} FOR TABLE …"
            )
        if row is None and mode == "all_tables":
            self._change(f"CREATE PUBLICATION {_quoted(name)} FOR ALL TABLES")
        elif mode == "filtered" and not (row and row[0]):
            self._filter(name, tables, is_new=row is None)

    def _filter(self, name: str, tables: Sequence[TableName], *, is_new: bool) -> None:
        if not tables:
            raise ConnectError("No table matches the lists of tables, so there is nothing to publish")
        published = self._connection.execute(
            "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [name]
        ).fetchall()
        if not is_new and {TableName(*row) for row in published} == set(tables):
            return
        listed = ", ".join(qualified(each) for each in tables)
        verb = "CREATE PUBLICATION {} FOR" if is_new else "ALTER PUBLICATION {} SET"
        self._change(f"{verb.format(_quoted(name))} TABLE {listed}")

    def _change(self, statement: str) -> None:
        logger.info("Changing the publication: %s", statement)
        self._connection.execute(statement)


def qualified(table: TableName) -> str:
    return f"{_quoted(table.schema)}.{_quoted(table.table)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
