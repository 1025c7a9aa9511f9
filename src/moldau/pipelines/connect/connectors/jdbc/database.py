"""One connection to a database: opened with attempts and back-off, and again after it broke."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from moldau.pipelines.connect.connectors.jdbc.dialects.interface import Connection, MissingDriver, Row
from moldau.pipelines.connect.connectors.jdbc.settings import ConnectionSettings
from moldau.pipelines.connect.data.errors import RetriableError

logger = logging.getLogger(__name__)


class Unreachable(RetriableError):
    """All attempts to connect failed."""


class Database:
    def __init__(
        self, settings: ConnectionSettings, wait: Callable[[float], bool], *, reading: bool = False
    ) -> None:
        """Connect on first use; `wait` returns True if the attempts have to end."""
        self._settings = settings
        self._wait = wait
        self._reading = reading
        self.dialect = settings.dialect()
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self.dialect.execute(self.connection, sql, parameters)

    def commit(self) -> None:
        if self._connection is not None:
            self._connection.commit()

    def rollback(self) -> None:
        """Roll back; a connection that cannot is closed."""
        if self._connection is not None:
            try:
                self._connection.rollback()
            except self.dialect.errors():
                self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except self.dialect.errors() as error:
                logger.debug("Closing the connection to %s: %s", self._settings.target, error)

    def _connect(self) -> Connection:
        settings, reason = self._settings, ""
        for attempt in range(1, settings.attempts + 1):
            try:
                return self.dialect.connect(
                    settings.target, settings.user, settings.password, reading=self._reading
                )
            except MissingDriver:
                raise
            except (self.dialect.errors(), OSError) as error:
                reason = self._without_secrets(str(error))
                logger.warning(
                    "Attempt %d of %d to connect to %s failed: %s",
                    *(attempt, settings.attempts, settings.target, reason),
                )
                if attempt == settings.attempts or self._wait(settings.backoff_s):
                    break
        raise Unreachable(f"Cannot connect to {settings.target}: {reason}")

    def _without_secrets(self, text: str) -> str:
        for secret in (self._settings.password, self._settings.target.options.get("password")):
            if secret:
                text = text.replace(secret, "[hidden]")
        return text.strip()
