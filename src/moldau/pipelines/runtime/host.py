"""Runs the queries of many pipelines in one Spark session, and each as if it were alone.

A pipeline runs as long as all its queries do. When one of them fails, the others of this pipeline are
stopped, and all are started again after a pause (`restarts`); Spark goes on from the checkpoint, so nothing
is lost or doubled. What would fail again the same way (a query that Spark does not understand, a check that
says stop) is not tried again. Other pipelines notice nothing.

`tick` does everything that is due; the driver calls it a few times a second. Time is an argument.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from moldau.pipelines.runtime.checks import UNREADABLE
from moldau.pipelines.runtime.definition import Check
from moldau.pipelines.runtime.failures import BadData, brief, is_fatal
from moldau.pipelines.runtime.progress import Summary
from moldau.pipelines.runtime.python_pipeline import Context, Runnable
from moldau.pipelines.runtime.restarts import Policy, Restarts
from moldau.pipelines.runtime.state import ENDED, StateFolder, Status
from moldau.pipelines.runtime.thresholds import exceeded

_LOG = logging.getLogger(__name__)

#: A rate is shown for so long after the batch it was measured in.
_QUIET_S = 5.0


class Hosted:
    """One pipeline and its queries."""

    def __init__(self, runnable: Runnable, status: Status, context: Context, policy: Policy) -> None:
        self.runnable = runnable
        self.status = status
        self.summaries: dict[str, Summary] = {}
        self._context = context
        self._restarts = Restarts(policy)
        self._restarts.count = status.restarts
        self._queries: list[StreamingQuery] = []
        self._again_at: float | None = 0.0
        self._news_at: float | None = None
        #: Which counts of the checks are those of dead letters.
        self.letters = frozenset(_dead_letter_checks(runnable))
        self._checks = _checks(runnable)

    @property
    def has_ended(self) -> bool:
        return self.status.state in ENDED

    def tick(self, spark: SparkSession, now: float) -> None:
        """Start if it is time, look after the queries, take note of their progress."""
        if self.has_ended:
            return
        if self._again_at is not None:
            if now >= self._again_at:
                self._start(spark, now)
            return
        too_many = self._note_progress(now)
        if too_many is not None:
            self._failed(BadData(too_many), now)
            return
        ended = [query for query in self._queries if not query.isActive]
        error = next((query.exception() for query in ended if query.exception() is not None), None)
        if error is not None:
            self._failed(error, now)
        elif len(ended) == len(self._queries):
            self._end("finished")

    def stop(self) -> None:
        """Stop the queries; a batch under way is done again by the next start."""
        self._note_progress()
        self._stop_queries()
        if not self.has_ended:
            self._end("stopped")

    def _start(self, spark: SparkSession, now: float) -> None:
        self._again_at = None
        self.status.state = "starting"
        self._restarts.started(now)
        try:
            _share_cores_fairly(spark, self.status.name)
            self._queries = self.runnable.start(spark, self._context)
        except Py4JNetworkError:
            # Without its JVM this process is of no use to any pipeline: the supervisor starts another.
            raise
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything, to its own harm only
            self._failed(error, now)
            return
        for query in self._queries:
            # A query that goes on has new batch numbers, or repeats one.
            self.summaries.setdefault(_name(query), Summary(_name(query)))
        self.status.state = "running"

    def _failed(self, error: BaseException, now: float) -> None:
        self._note_progress()
        self._stop_queries()
        self.status.error = brief(error)
        pause = None if is_fatal(error) else self._restarts.failed(now)
        if pause is None:
            _LOG.error("The pipeline %s has failed: %s", self.status.name, self.status.error)
            self._end("failed")
            return
        _LOG.warning(
            "The pipeline %s is started again in %g s: %s", self.status.name, pause, self.status.error
        )
        self.status.state = "waiting"
        self.status.restarts = self._restarts.count
        self._again_at = now + pause

    def _stop_queries(self) -> None:
        for query in self._queries:
            try:
                query.stop()
            except PySparkException as error:
                _LOG.warning("A query of %s did not stop: %s", self.status.name, brief(error))
        self._queries = []
        self.runnable.close()

    def _end(self, state: str) -> None:
        self.status.state = state
        if state != "failed":
            self.status.error = None

    def _note_progress(self, now: float | None = None) -> str | None:
        """Take note, and say which check has failed too often."""
        too_many = None
        for query in self._queries:
            summary = self.summaries[_name(query)]
            news = list(_news(query, summary.batch))
            too_many = too_many or exceeded(self._checks, news, summary.batch)
            if summary.take(news):
                self.status.error = None
                self._news_at = now
            elif now is not None and now - (self._news_at or now) > _QUIET_S:
                # Spark says nothing of a query that has nothing to do.
                summary.rows_per_second = 0.0
        self._show()
        return too_many

    def _show(self) -> None:
        status = self.status
        status.queries = [
            {**dataclasses.asdict(each), "total_lag": each.total_lag} for each in self.summaries.values()
        ]
        checks: dict[str, int] = {}
        for each in self.summaries.values():
            for name, count in each.counts.items():
                checks[name] = max(checks.get(name, 0), count)
        status.checks = checks
        status.dead_letters = sum(checks.get(name, 0) for name in self.letters)


class Host:
    """All pipelines of a driver."""

    def __init__(self, spark: SparkSession, folder: StateFolder, clock_ms: Callable[[], int]) -> None:
        self._spark = spark
        self._folder = folder
        self._clock_ms = clock_ms
        self.hosted: list[Hosted] = []
        #: Whether the state folder could not be written to.
        self._hidden = False

    def add(self, hosted: Hosted) -> None:
        hosted.status.driver = os.getpid()
        hosted.status.since_ms = hosted.status.since_ms or self._clock_ms()
        self.hosted.append(hosted)

    @property
    def has_ended(self) -> bool:
        return all(each.has_ended for each in self.hosted)

    def tick(self, now: float) -> None:
        for each in self.hosted:
            name = each.status.name
            if not each.has_ended and self._folder.wants_stop(name):
                each.stop()
                self._folder.clear_stop(name)
            each.tick(self._spark, now)
            self._write(each)

    def stop(self) -> None:
        for each in self.hosted:
            each.stop()
            self._write(each)

    def _write(self, hosted: Hosted) -> None:
        hosted.status.updated_ms = self._clock_ms()
        try:
            self._folder.write(hosted.status)
        except OSError as error:
            # A full disk hides what the queries do; whether they can go on is for them to find out.
            if not self._hidden:
                _LOG.warning("What is known of pipelines cannot be written: %s", error)
            self._hidden = True
        else:
            self._hidden = False


def _share_cores_fairly(spark: SparkSession, name: str) -> None:
    """The queries started next by this thread get their turns beside others, not behind them."""
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def _news(query: StreamingQuery, batch: int) -> Iterable[Mapping[str, Any]]:
    """The progress since a batch: mostly the last one says it all, and costs less to ask for."""
    last: Any = query.lastProgress
    if last is None:
        return []
    return [last] if last["batchId"] <= batch + 1 else query.recentProgress


def _name(query: StreamingQuery) -> str:
    return query.name or str(query.id)


def _checks(runnable: Runnable) -> list[Check]:
    definition = getattr(runnable, "definition", None)
    return [] if definition is None else definition.all_checks


def _dead_letter_checks(runnable: Runnable) -> list[str]:
    definition = getattr(runnable, "definition", None)
    if definition is None or definition.dead_letter is None:
        return []
    return [UNREADABLE, *(check.counter for check in _checks(runnable) if check.on_fail == "dead_letter")]
