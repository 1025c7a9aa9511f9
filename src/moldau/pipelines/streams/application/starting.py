"""Queries are started a few at a time: each begins with a Python process beside the driver, and Spark gives
up on one that takes ten seconds to say something, which many at once on a busy machine do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

#: How many queries may be on their way at once.
AT_ONCE = 2
_PATIENCE_S = 60
_ATTEMPTS = 4
_TOO_SLOW = "Python worker failed to connect back"


def wait_for_room(queries: Sequence[StreamingQuery]) -> None:
    """Until another query may be started; one that has failed is not waited for."""
    deadline = time.monotonic() + _PATIENCE_S
    while sum(not has_begun(query) for query in queries) >= AT_ONCE and time.monotonic() < deadline:
        time.sleep(0.05)


def has_begun(query: StreamingQuery) -> bool:
    """Whether a query is through with its first batch, waits for records, or has ended."""
    if not query.isActive or query.lastProgress is not None:
        return True
    return str(query.status["message"]).startswith("Waiting")


def error_of(query: StreamingQuery) -> Exception | None:
    return None if query.isActive else query.exception()


class Runs:
    """The queries of an application. One whose Python process did not come up in time is started again: it
    has not done anything yet, and what it does is kept with its batches."""

    def __init__(self) -> None:
        self.queries: list[StreamingQuery] = []
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._attempts: dict[str, int] = {}

    def start(self, name: str, begin: Callable[[], StreamingQuery]) -> None:
        wait_for_room(self.queries)
        self._starts[name] = begin
        self._attempts[name] = 1
        self.queries.append(begin())

    def clear(self) -> None:
        self.queries.clear()

    def revive(self, query: StreamingQuery) -> StreamingQuery | None:
        """The query that takes the place of one that has failed; None if trying again is no use."""
        name = query.name or ""
        if _TOO_SLOW not in str(error_of(query)) or self._attempts.get(name, _ATTEMPTS) >= _ATTEMPTS:
            return None
        self._attempts[name] += 1
        again = self._starts[name]()
        self.queries[self.queries.index(query)] = again
        return again
