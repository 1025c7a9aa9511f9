"""The task of the JDBC source: polls its tables in turn, and retries when the database is not reachable."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.connectors.jdbc.database import Database, Unreachable
from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.connectors.jdbc.settings import ConnectionSettings
from moldau.pipelines.connect.connectors.jdbc.source import settings as names
from moldau.pipelines.connect.connectors.jdbc.source.offsets import (
    QUERY_PARTITION,
    RowOffset,
    partitions_of,
)
from moldau.pipelines.connect.connectors.jdbc.source.reader import ReaderSettings, TableReader
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.logical import EPOCH, datetime_of
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import SourceContext, SourceTask

logger = logging.getLogger(__name__)

_MAX_WAIT_S: Final = 1.0
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 30.0


class JdbcSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._database: Database | None = None
        self._failures = 0
        self._readers: list[TableReader] = []

    def start(self, context: SourceContext) -> None:
        config = self._definition.parse(context.config)
        self._context = context
        self._retries: int = config[names.QUERY_RETRIES]
        self._database = Database(ConnectionSettings.from_config(config), context.wait, reading=True)
        self._readers = self._create_readers(config, self._database)

    def poll(self) -> Sequence[SourceRecord]:
        reader = min(self._readers, key=lambda each: each.due)
        left = reader.due - time.monotonic()
        if left > 0 and (self._context.wait(min(left, _MAX_WAIT_S)) or left > _MAX_WAIT_S):
            return ()
        try:
            records = reader.poll()
        except (self._open.dialect.errors(), Unreachable) as error:
            self._failed(error)
            return ()
        self._failures = 0
        return records

    def stop(self) -> None:
        self._close()

    def _failed(self, error: Exception) -> None:
        """Connect again after a while; `ConnectError` if repeating cannot help."""
        self._close()
        may_pass = isinstance(error, Unreachable) or self._open.dialect.is_transient(error)
        if not may_pass or self._failures == self._retries:
            raise ConnectError(f"The query failed: {error}") from error
        self._failures += 1
        delay_s = min(_FIRST_RETRY_S * 2 ** min(self._failures, 20), _LAST_RETRY_S)
        logger.warning("The query failed, retrying in %.1f s: %s", delay_s, error)
        self._context.wait(delay_s)

    def _close(self) -> None:
        for each in self._readers:
            each.reset()
        if self._database is not None:
            self._database.close()

    @property
    def _open(self) -> Database:
        if self._database is None:
            raise ConnectError("The task has not started")
        return self._database

    def _create_readers(self, config: Mapping[str, Any], database: Database) -> list[TableReader]:
        settings, prefix = ReaderSettings.from_config(config), config[names.TOPIC_PREFIX]
        query = names.query_of(config)
        if query:
            stored = self._context.offset(QUERY_PARTITION)
            offset = self._initial(config, stored, settings, database)
            return [TableReader(database, settings, None, query, prefix, QUERY_PARTITION, offset)]
        readers = []
        for each in json.loads(self._context.config.get(names.TABLES, "[]")):
            table = TableId(*each)
            partitions = partitions_of(table)
            stored = next((each for each in self._context.offsets(partitions) if each), None)
            offset = self._initial(config, stored, settings, database)
            topic = prefix + table.table
            readers.append(TableReader(database, settings, table, "", topic, partitions[0], offset))
        if not readers:
            raise ConnectError("The task has no tables")
        return readers

    def _initial(
        self,
        config: Mapping[str, Any],
        stored: Mapping[str, Any] | None,
        settings: ReaderSettings,
        database: Database,
    ) -> RowOffset:
        """Return where to continue, or where `timestamp.initial` says to begin."""
        initial = config[names.TIMESTAMP_INITIAL]
        if stored or initial is None or not settings.by_time:
            return RowOffset.from_connect(stored)
        if initial == -1:
            return RowOffset(None, self._now(database))
        return RowOffset(None, datetime_of(initial) if initial > 0 else EPOCH)

    def _now(self, database: Database) -> datetime:
        try:
            return database.dialect.now(database.connection).astimezone(UTC)
        finally:
            database.rollback()
