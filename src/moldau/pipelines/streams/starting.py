"""Queries are started a few at a time: each begins with a Python process beside the driver, and Spark gives
up on one that takes ten seconds to say something, which many at once on a busy machine do."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql.streaming.query import StreamingQuery

#: How many queries may be on their way at once.
AT_ONCE = 2
_PATIENCE_S = 60
_BEGINNING = ("Initializing", "Getting offsets")


def wait_for_room(queries: Sequence[StreamingQuery]) -> None:
    """Until another query may be started; one that has failed is not waited for."""
    deadline = time.monotonic() + _PATIENCE_S
    while sum(not has_begun(query) for query in queries) >= AT_ONCE and time.monotonic() < deadline:
        time.sleep(0.05)


def has_begun(query: StreamingQuery) -> bool:
    """Whether a query has found its first offsets, or has ended."""
    if not query.isActive or query.lastProgress is not None:
        return True
    return not str(query.status["message"]).startswith(_BEGINNING)
