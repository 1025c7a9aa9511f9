"""Queries that come up too slowly are started again, others are not."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.streams.application.starting import Runs

SLOW = "Python worker failed to connect back."


class Query:
    """A query of Spark's that has ended so."""

    isActive = False
    lastProgress = None

    def __init__(self, name: str, said: str) -> None:
        self.name = name
        self._said = said

    def exception(self) -> Exception:
        return RuntimeError(self._said)


def started(said: str) -> tuple[Runs, Any]:
    runs = Runs()
    runs.start("counts", lambda: Query("counts", said))  # type: ignore[arg-type, return-value]
    return runs, runs.queries[0]


def test_a_process_that_came_too_late_is_tried_four_times() -> None:
    runs, query = started(SLOW)
    tried = 1
    while (again := runs.revive(query)) is not None:
        assert runs.queries == [again]
        query, tried = again, tried + 1
    assert tried == 4


def test_what_failed_for_another_reason_stays_so() -> None:
    runs, query = started("doubling failed on in-0@2")
    assert runs.revive(query) is None
    assert runs.queries == [query]
