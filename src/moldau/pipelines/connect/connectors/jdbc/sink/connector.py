"""The JDBC sink connector and its task.

Every `put` is one transaction. With `insert.mode=upsert`, and with keys of Kafka's coordinates, a record that
is delivered again changes nothing, so the rows are exactly once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigValue
from moldau.pipelines.connect.connectors.jdbc.database import Database, Unreachable
from moldau.pipelines.connect.connectors.jdbc.settings import ConnectionSettings
from moldau.pipelines.connect.connectors.jdbc.sink import settings as names
from moldau.pipelines.connect.connectors.jdbc.sink.writer import Writer
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

logger = logging.getLogger(__name__)


class JdbcSinkConnector(SinkConnector):
    config = names.sink_config()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        names.check_sink(values)
        return values

    def task(self) -> SinkTask:
        return JdbcSinkTask(self.config)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class JdbcSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._database: Database | None = None

    def start(self, context: SinkContext) -> None:
        config = self._definition.parse(context.config)
        self._context = context
        self._retries: int = config[names.MAX_RETRIES]
        self._left = self._retries
        self._backoff_ms: int = config[names.RETRY_BACKOFF]
        self._database = Database(ConnectionSettings.from_config(config), context.wait)
        self._writer = Writer(self._database, config)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except Unreachable as error:
            self._retry(error)
        except self._open.dialect.errors() as error:
            # The connection may be broken in a way that only the next statement would show.
            self._open.close()
            self._writer.forget()
            if self._open.dialect.is_transient(error):
                self._retry(error)
            raise ConnectError(f"Writing to the database failed: {error}") from error
        self._left = self._retries

    def stop(self) -> None:
        if self._database is not None:
            self._database.close()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        try:
            self._writer.write(records)
        except ConnectError as error:
            if isinstance(error, Unreachable):
                raise
            self._divide(records, error)
        except self._open.dialect.errors() as error:
            if self._open.dialect.is_transient(error):
                raise
            self._divide(records, error)

    def _divide(self, records: Sequence[SinkRecord], error: Exception) -> None:
        """Find the records that the database refuses by halves, and report them; write the others."""
        if len(records) == 1:
            self._context.report(records[0], _refusal(error))
            return
        middle = len(records) // 2
        self._write(records[:middle])
        self._write(records[middle:])

    def _retry(self, error: Exception) -> Any:
        """Ask for the records again; `ConnectError` if they failed too often."""
        if self._left <= 0:
            raise ConnectError(f"Writing failed {self._retries + 1} times: {error}") from error
        self._left -= 1
        logger.warning("Writing failed, %d retries left: %s", self._left, error)
        self._context.retry_after(self._backoff_ms)
        raise RetriableError(f"Writing failed: {error}") from error

    @property
    def _open(self) -> Database:
        if self._database is None:
            raise ConnectError("The task has not started")
        return self._database


def _refusal(error: Exception) -> ConnectError:
    return (
        error
        if isinstance(error, ConnectError)
        else ConnectError(f"The database refused the record: {error}")
    )
