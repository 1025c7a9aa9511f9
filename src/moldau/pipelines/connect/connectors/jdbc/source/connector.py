"""The JDBC source connector: divides the tables among tasks, and watches for new and removed ones."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.pipelines.connect.config.definition import ConfigValue
from moldau.pipelines.connect.connectors.jdbc.database import Database
from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.connectors.jdbc.settings import ConnectionSettings
from moldau.pipelines.connect.connectors.jdbc.source import settings as names
from moldau.pipelines.connect.connectors.jdbc.source.offsets import check_offset
from moldau.pipelines.connect.connectors.jdbc.source.tables import TableFilter
from moldau.pipelines.connect.connectors.jdbc.source.task import JdbcSourceTask
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.sdk import (
    ConnectorContext,
    ExactlyOnceSupport,
    Offset,
    Partition,
    SourceConnector,
    SourceTask,
)

logger = logging.getLogger(__name__)


class JdbcSourceConnector(SourceConnector):
    config = names.source_config()

    def start(self, properties: Mapping[str, str], context: ConnectorContext) -> None:
        super().start(properties, context)
        self._parsed = self.config.parse(properties)
        self._stopping = threading.Event()
        self._tables: list[TableId] = []
        self._monitor: threading.Thread | None = None
        if not names.query_of(self._parsed):
            self._tables = self._find_tables()
            if not self._tables:
                logger.warning(
                    "No table of the database matches the configuration; tasks start when one does"
                )
            self._monitor = threading.Thread(target=self._watch, name="jdbc-tables", daemon=True)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        if names.query_of(self._parsed):
            return [self.properties]
        groups = [self._tables[first::max_tasks] for first in range(min(max_tasks, len(self._tables)))]
        return [{**self.properties, names.TABLES: json.dumps(each)} for each in groups]

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        names.check_source(values)
        for name in (names.INCLUDE, names.EXCLUDE):
            if not values[name].errors:
                _check_patterns(values, name)
        return values

    def task(self) -> SourceTask:
        return JdbcSourceTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        """Rows have offsets in all modes but bulk."""
        is_bulk = properties.get(names.MODE) == names.BULK
        return ExactlyOnceSupport.UNSUPPORTED if is_bulk else ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            check_offset(partition, offset)
        return True

    def stop(self) -> None:
        self._stopping.set()
        if self._monitor is not None:
            self._monitor.join(timeout=10)

    def _find_tables(self) -> list[TableId]:
        settings = ConnectionSettings.from_config(self._parsed)
        database = Database(settings, self._stopping.wait, reading=True)
        try:
            found = database.dialect.tables(database.connection, self._parsed[names.TABLE_TYPES])
            return TableFilter(self._parsed).select(found)
        except database.dialect.errors() as error:
            raise ConnectError(f"Cannot read the tables of {settings.target}: {error}") from error
        finally:
            database.close()

    def _watch(self) -> None:
        while not self._stopping.wait(self._parsed[names.TABLE_POLL_INTERVAL] / 1000):
            try:
                found = self._find_tables()
            except ConnectError as error:
                logger.warning("The tables cannot be listed, retrying: %s", error)
                continue
            if found != self._tables:
                logger.info("The tables changed: %s", ", ".join(map(str, found)))
                self._tables = found
                self.context.request_task_reconfiguration()


def _check_patterns(values: Mapping[str, ConfigValue], name: str) -> None:
    others: dict[str, Any] = {each: value.value for each, value in values.items()}
    for each in (names.WHITELIST, names.BLACKLIST, names.INCLUDE, names.EXCLUDE):
        others[each] = others.get(each) or []
    try:
        TableFilter(others)
    except ConfigError as error:
        if name in str(error):
            values[name].errors.append(str(error))
