"""The first read of all tables, exactly at the position where the stream of changes begins.

A temporary replication slot exports a snapshot: the transactions that commit after the slot's position are in
the stream and not in the snapshot, all others in the snapshot and not in the stream. So no row is missing or
repeated.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from moldau.pipelines.connect.connectors.cdc.catalog import TableName, qualified
from moldau.pipelines.connect.connectors.cdc.pgoutput import RelationColumn, Row
from moldau.pipelines.connect.connectors.cdc.replication import SESSION, ReplicationConnection

logger = logging.getLogger(__name__)


class SnapshotRow(NamedTuple):
    table: TableName
    row: Row
    #: The marker of Debezium: first, last, …
    marker: str


class Snapshot:
    def __init__(self, settings: dict[str, Any], slot: str) -> None:
        """Take a snapshot; `slot` is the name for the temporary slot."""
        import psycopg

        options = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
        self._connection = psycopg.connect(**settings, autocommit=True, options=options)
        try:
            self.lsn = self._begin(settings, slot)
        except BaseException:
            self._connection.close()
            raise
        self.time_us = time.time_ns() // 1000

    def rows(
        self, tables: list[tuple[TableName, tuple[RelationColumn, ...]]], fetch_size: int
    ) -> Iterator[SnapshotRow]:
        """Yield the rows of all tables with markers; the very last one is marked `last`."""
        held: SnapshotRow | None = None
        is_first = True
        for name, columns in tables:
            in_table = 0
            for row in self._table(name, columns, fetch_size):
                if held is not None:
                    yield held
                marker = "true" if in_table else "first_in_data_collection"
                held = SnapshotRow(name, row, "first" if is_first else marker)
                is_first = False
                in_table += 1
            logger.info("The snapshot has read %d rows of %s", in_table, name)
            if held is not None and in_table > 1:
                held = held._replace(marker="last_in_data_collection")
        if held is not None:
            yield held._replace(marker="last")

    def close(self) -> None:
        self._connection.close()

    def _begin(self, settings: dict[str, Any], slot: str) -> int:
        replication = ReplicationConnection(settings)
        try:
            logger.info("Creating a snapshot; this waits for the transactions that are open now")
            found = replication.create_slot(slot, temporary=True)
            name = found.snapshot.replace("'", "''")
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._connection.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            return found.lsn
        finally:
            # The temporary slot ends with its connection; the transaction keeps the snapshot.
            replication.close()

    def _table(self, name: TableName, columns: tuple[RelationColumn, ...], fetch_size: int) -> Iterator[Row]:
        """Yield the rows as text, which is what the stream carries as well."""
        listed = ", ".join('"' + each.name.replace('"', '""') + '"' for each in columns)
        self._connection.execute(
            f"DECLARE moldau_snapshot NO SCROLL CURSOR FOR SELECT {listed} FROM ONLY {qualified(name)}"
        )
        while True:
            result = self._connection.execute(f"FETCH {fetch_size} FROM moldau_snapshot").pgresult
            if result is None or not result.ntuples:
                break
            for row in range(result.ntuples):
                cells = (result.get_value(row, column) for column in range(result.nfields))
                yield tuple(None if cell is None else cell.decode() for cell in cells)
        self._connection.execute("CLOSE moldau_snapshot")
