"""The Spark queries of an application, one per stage.

Every query starts a Python process next to the driver. Spark gives up on a process that does not connect
within ten seconds, which happens if many start at once on a busy machine. So queries are started a few at a
time, and a query whose process was too slow is started again: it has not processed anything yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

#: Maximum number of queries that start at once.
MAX_STARTING = 2
_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 30
_MAX_ATTEMPTS = 4
_TOO_SLOW = "Python worker failed to connect back"


class StageQueries:
    """Starts, restarts and stops the queries of an application."""

    def __init__(self) -> None:
        self.queries: list[StreamingQuery] = []
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._attempts: dict[str, int] = {}

    def start(self, name: str, start: Callable[[], StreamingQuery]) -> None:
        wait_for_slot(self.queries)
        self._starts[name] = start
        self._attempts[name] = 1
        self.queries.append(start())

    def restart(self, query: StreamingQuery) -> StreamingQuery | None:
        """Start a failed query again. Return the new query, or None if the failure is permanent."""
        name = query.name or ""
        if _TOO_SLOW not in str(error_of(query)) or self._attempts.get(name, _MAX_ATTEMPTS) >= _MAX_ATTEMPTS:
            return None
        self._attempts[name] += 1
        again = self._starts[name]()
        self.queries[self.queries.index(query)] = again
        return again

    def failed(self) -> StreamingQuery | None:
        """Return a query that has failed, if there is one."""
        return next((query for query in self.queries if error_of(query) is not None), None)

    def clear(self) -> None:
        """Forget queries that have ended."""
        self.queries.clear()

    def stop(self) -> None:
        """Stop all queries and wait until they have ended."""
        for query in self.queries:
            if query.isActive:
                query.stop()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(query.isActive for query in self.queries) and time.monotonic() < deadline:
            time.sleep(0.05)


def wait_for_slot(queries: Sequence[StreamingQuery]) -> None:
    """Wait until fewer than `MAX_STARTING` queries are starting."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while sum(not has_started(query) for query in queries) >= MAX_STARTING and time.monotonic() < deadline:
        time.sleep(0.05)


def has_started(query: StreamingQuery) -> bool:
    """Whether a query has completed its first batch, is waiting for records, or has ended."""
    if not query.isActive or query.lastProgress is not None:
        return True
    return str(query.status["message"]).startswith("Waiting")


def error_of(query: StreamingQuery) -> Exception | None:
    return None if query.isActive else query.exception()
