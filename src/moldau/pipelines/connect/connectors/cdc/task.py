"""The task of the PostgreSQL source: snapshot, then stream, and again after the connection broke."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.connectors.cdc import settings as names
from moldau.pipelines.connect.connectors.cdc.catalog import Catalog, SlotState
from moldau.pipelines.connect.connectors.cdc.envelope import Origin
from moldau.pipelines.connect.connectors.cdc.events import Events
from moldau.pipelines.connect.connectors.cdc.offsets import (
    StreamPosition,
    is_unfinished_snapshot,
    partition_of,
    position_of,
    snapshot_offset,
)
from moldau.pipelines.connect.connectors.cdc.replication import ReplicationConnection
from moldau.pipelines.connect.connectors.cdc.snapshot import Snapshot
from moldau.pipelines.connect.connectors.cdc.stream import Stream
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.schema import INT64, STRING, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.sdk import SourceContext, SourceTask

logger = logging.getLogger(__name__)

_HEARTBEAT_KEY: Final = struct({"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey")
_HEARTBEAT: Final = struct({"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat")


class PostgresTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._catalog: Catalog | None = None
        self._snapshot: Snapshot | None = None
        self._rows: Iterator[SourceRecord] | None = None
        self._connection: ReplicationConnection | None = None
        self._stream: Stream | None = None
        self._position: StreamPosition | None = None
        #: The position of the last record, or of the last offset without a record, that was returned.
        self._returned: StreamPosition | None = None
        self._pending: StreamPosition | None = None
        self._failures = 0
        self._confirmed_at = self._beat_at = 0.0
        self._always_done = False
        self._drops_slot = False

    def start(self, context: SourceContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._settings = names.connection_settings(config)
        self._partition = partition_of(config[names.TOPIC_PREFIX])
        self._drops_slot = config[names.SLOT_DROP]
        self._poll_s: float = config[names.POLL_INTERVAL] / 1000
        self._status_s: float = config[names.STATUS_INTERVAL] / 1000
        self._beat_s: float = config[names.HEARTBEAT] / 1000

    def poll(self) -> Sequence[SourceRecord]:
        import psycopg

        try:
            if self._rows is None and self._stream is None:
                self._open()
            records = self._read()
        except psycopg.Error as error:
            self._failed(error)
            return ()
        self._failures = 0
        return records

    def pending_offsets(self) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
        """Store the position while no captured table changes, so that the slot follows it."""
        pending, self._pending = self._pending, None
        return () if pending is None else [(self._partition, pending.to_connect())]

    def stop(self) -> None:
        self._close()
        if self._drops_slot:
            self._drop_slot()

    # Reading.

    def _read(self) -> list[SourceRecord]:
        limit = self._config[names.MAX_BATCH]
        if self._rows is not None:
            found = []
            for record in self._rows:
                found.append(record)
                if len(found) == limit:
                    return found
            self._end_snapshot()
            return found
        if self._stream is None:
            self._context.wait(1.0)
            return []
        found = self._stream.read(limit, self._poll_s)
        self._position = self._stream.position
        now = time.monotonic()
        if now - self._confirmed_at >= self._status_s:
            self._confirmed_at = now
            self._stream.confirm(self._context.offset(self._partition))
            if not found and not self._stream.in_transaction and self._position != self._returned:
                self._pending = self._position
        if self._beat_s and now - self._beat_at >= self._beat_s and not found:
            self._beat_at = now
            found, self._pending = [self._heartbeat(self._stream.position)], None
        if found or self._pending is not None:
            self._returned = self._position
        return found

    def _heartbeat(self, position: StreamPosition) -> SourceRecord:
        prefix = self._config[names.TOPIC_PREFIX]
        return SourceRecord(
            topic=f"{self._config[names.HEARTBEAT_PREFIX]}.{prefix}",
            key_schema=_HEARTBEAT_KEY,
            key=Struct(_HEARTBEAT_KEY, serverName=prefix),
            value_schema=_HEARTBEAT,
            value=Struct(_HEARTBEAT, ts_ms=time.time_ns() // 1_000_000),
            source_partition=self._partition,
            source_offset=position.to_connect(),
        )

    # Opening.

    def _open(self) -> None:
        config = self._config
        self._catalog = catalog = Catalog(self._settings)
        events = Events(config, catalog, self._partition)
        tables = catalog.tables(events.chosen)
        catalog.ensure_publication(config[names.PUBLICATION], config[names.AUTOCREATE], tables)
        stored = None if self._position is not None else self._context.offset(self._partition)
        slot = catalog.slot(config[names.SLOT])
        if self._needs_snapshot(stored, slot):
            self._ensure_slot(slot)
            self._begin_snapshot(events, catalog)
            return
        position = self._position or (position_of(stored) if stored else None)
        if position is None:
            position = StreamPosition(self._ensure_slot(slot))
        elif slot is None or slot.is_lost:
            raise ConnectError(
                f"The replication slot {config[names.SLOT]} is gone, and with it the changes since the "
                "stored position. Reset the offsets of the connector to begin with a new snapshot, or set "
                "snapshot.mode=when_needed"
            )
        elif _is_past(slot, position):
            raise ConnectError(
                f"The replication slot {config[names.SLOT]} begins after the stored position, so the changes "
                "between them are gone. Reset the offsets of the connector to begin with a new snapshot, or "
                "set snapshot.mode=when_needed"
            )
        self._begin_stream(events, position)

    def _needs_snapshot(self, stored: Mapping[str, Any] | None, slot: SlotState | None) -> bool:
        mode = self._config[names.SNAPSHOT_MODE]
        if mode in (names.NO_DATA, names.NEVER):
            return False
        if mode == names.WHEN_NEEDED:
            if slot is None or slot.is_lost:
                return True
            if stored and not is_unfinished_snapshot(stored) and _is_past(slot, position_of(stored)):
                return True
        if self._position is not None:
            return False
        if mode == names.ALWAYS and not self._always_done:
            return True
        return stored is None or is_unfinished_snapshot(stored)

    def _ensure_slot(self, slot: SlotState | None) -> int:
        """Return the position where the slot's stream begins; create the slot if it is missing."""
        name = self._config[names.SLOT]
        if slot is not None and not slot.is_lost:
            return slot.confirmed_lsn or 0
        connection = ReplicationConnection(self._settings)
        try:
            if slot is not None:
                connection.drop_slot(name)
            logger.info("Creating the replication slot %s", name)
            return connection.create_slot(name).lsn
        finally:
            connection.close()

    def _begin_snapshot(self, events: Events, catalog: Catalog) -> None:
        self._position = None
        slot = f"{self._config[names.SLOT][:50]}_snapshot"
        self._snapshot = snapshot = Snapshot(self._settings, slot)
        found = []
        for name in catalog.tables(events.chosen):
            definition = catalog.definition(name)
            if definition is not None and definition.columns:
                found.append((name, definition))
        tables = {name: events.table(name, each.columns, each) for name, each in found}
        listed = [(name, each.columns) for name, each in found]
        self._rows = self._snapshot_records(events, snapshot, tables, listed)

    def _snapshot_records(
        self, events: Events, snapshot: Snapshot, tables: Mapping[Any, Any], listed: list[Any]
    ) -> Iterator[SourceRecord]:
        for name, row, marker in snapshot.rows(listed, self._config[names.FETCH_SIZE]):
            origin = Origin(snapshot.time_us, snapshot.lsn, snapshot=marker)
            offset = snapshot_offset(snapshot.lsn, snapshot.time_us, last=marker == "last")
            yield events.read(tables[name], row, origin, offset)

    def _end_snapshot(self) -> None:
        snapshot, self._snapshot, self._rows = self._snapshot, None, None
        if snapshot is None:
            return
        snapshot.close()
        self._always_done = True
        self._position = StreamPosition(snapshot.lsn)
        if self._config[names.SNAPSHOT_MODE] == names.INITIAL_ONLY:
            logger.info("The snapshot is complete; the mode initial_only reads no changes")
            return
        if self._catalog is not None:
            self._begin_stream(Events(self._config, self._catalog, self._partition), self._position)

    def _begin_stream(self, events: Events, position: StreamPosition) -> None:
        self._position = position
        if self._config[names.SNAPSHOT_MODE] == names.INITIAL_ONLY:
            return
        self._connection = ReplicationConnection(self._settings)
        self._connection.start(self._config[names.SLOT], position.commit_lsn, self._config[names.PUBLICATION])
        self._stream = Stream(self._connection, events, position)

    # Ending.

    def _failed(self, error: Exception) -> None:
        """Close the connections and wait; the next poll continues after the last record."""
        if self._rows is not None:
            # A snapshot cannot be continued: its transaction is gone.
            self._position = None
        self._close()
        most = self._config[names.MAX_RETRIES]
        if 0 <= most <= self._failures:
            raise ConnectError(f"Reading changes failed {self._failures + 1} times: {error}") from error
        self._failures += 1
        wait_s = self._config[names.RETRY_WAIT] / 1000
        logger.warning("Reading changes failed, trying again in %.1f s: %s", wait_s, str(error).strip())
        self._context.wait(wait_s)

    def _close(self) -> None:
        import psycopg

        opened = (self._connection, self._snapshot, self._catalog)
        self._connection = self._snapshot = self._catalog = None
        self._stream = self._rows = None
        for each in opened:
            if each is not None:
                with suppress(psycopg.Error):
                    each.close()

    def _drop_slot(self) -> None:
        import psycopg

        with suppress(psycopg.Error):
            connection = ReplicationConnection(self._settings)
            try:
                connection.drop_slot(self._config[names.SLOT])
            finally:
                connection.close()


def _is_past(slot: SlotState, position: StreamPosition) -> bool:
    """Return whether the slot no longer has all changes after a position.

    A transaction that was read in part commits after its changes, so the slot may be past their positions.
    """
    return (slot.confirmed_lsn or 0) > max(position.commit_lsn, position.lsn or 0)
