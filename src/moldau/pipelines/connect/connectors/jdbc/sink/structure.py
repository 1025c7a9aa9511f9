"""The tables of the target: read once, created and extended if the configuration allows it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from moldau.pipelines.connect.connectors.jdbc.database import Database
from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema

logger = logging.getLogger(__name__)

#: Another task may create or extend the same table at the same time.
_ATTEMPTS = 3


class Structure:
    def __init__(self, database: Database, *, create: bool, evolve: bool) -> None:
        self._database = database
        self._create = create
        self._evolve = evolve
        self._columns: dict[TableId, set[str]] = {}

    def ensure(self, table: TableId, columns: Mapping[str, Schema], keys: Sequence[str]) -> None:
        """Make the table have these columns; `ConnectError` if it has not and may not be changed.

        Called outside of a transaction: definitions are committed at once.
        """
        if columns.keys() <= self._columns.get(table, set()):
            return
        for attempt in range(1, _ATTEMPTS + 1):
            found = self._read(table)
            if columns.keys() <= found:
                break
            statements = self._changes(table, columns, keys, found)
            try:
                for each in statements:
                    logger.info("Changing the table %s: %s", table, each)
                    self._database.execute(each)
                self._database.commit()
            except self._database.dialect.errors() as error:
                self._database.rollback()
                if attempt == _ATTEMPTS:
                    raise ConnectError(f"Cannot create or extend the table {table}: {error}") from error
        self._columns[table] = self._read(table)

    def forget(self) -> None:
        """Read the tables again before the next write: a statement failed, they may have changed."""
        self._columns.clear()

    def _read(self, table: TableId) -> set[str]:
        database = self._database
        found = {each.name for each in database.dialect.columns(database.connection, table)}
        database.rollback()
        return found

    def _changes(
        self, table: TableId, columns: Mapping[str, Schema], keys: Sequence[str], found: set[str]
    ) -> list[str]:
        dialect = self._database.dialect
        if not found:
            if not self._create:
                raise ConnectError(
                    f"Table {table} is missing and auto-creation is disabled: create it, or set "
                    "auto.create=true"
                )
            return [dialect.create_table(table, columns, keys)]
        missing = {name: schema for name, schema in columns.items() if name not in found}
        if not self._evolve:
            raise ConnectError(
                f"Table {table} is missing fields ({', '.join(missing)}) and auto-evolution is disabled: add "
                "them, or set auto.evolve=true"
            )
        if required := [name for name, each in missing.items() if not each.optional and each.default is None]:
            raise ConnectError(
                f"Cannot alter table {table} to add missing fields {', '.join(required)}, as the fields are "
                "not optional and do not have a default value"
            )
        return dialect.add_columns(table, missing)
