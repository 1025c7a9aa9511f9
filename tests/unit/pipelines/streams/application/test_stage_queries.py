"""Queries whose Python process was too slow to connect are started again; other failures are permanent."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.streams.application.stage_queries import StageQueries

SLOW = "Python worker failed to connect back."


class Query:
    """A Spark query that has failed."""

    isActive = False
    lastProgress = None

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        self._message = message

    def exception(self) -> Exception:
        return RuntimeError(self._message)


def started(message: str) -> tuple[StageQueries, Any]:
    stages = StageQueries()
    stages.start("counts", lambda: Query("counts", message))  # type: ignore[arg-type, return-value]
    return stages, stages.queries[0]


def test_query_whose_process_was_too_slow_is_started_up_to_four_times() -> None:
    stages, query = started(SLOW)
    tried = 1
    while (again := stages.restart(query)) is not None:
        assert stages.queries == [again]
        query, tried = again, tried + 1
    assert tried == 4


def test_query_that_failed_for_another_reason_is_not_restarted() -> None:
    stages, query = started("doubling failed on in-0@2")
    assert stages.restart(query) is None
    assert stages.queries == [query]
