"""Run the queries of many pipelines in one Spark session, independently of each other.

A pipeline runs as long as all its queries do. If one fails, the other queries of the pipeline are stopped,
and all are restarted after a delay (`restarts`); Spark continues from the checkpoint, so records are neither
lost nor duplicated. A failure that would occur again (an invalid query, a failed check) is not retried. Other
pipelines are not affected.

The driver calls `tick` a few times a second. Time is an argument.
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

from moldau.pipelines.runtime.checks import UNREADABLE, exceeded
from moldau.pipelines.runtime.definition import Definition
from moldau.pipelines.runtime.failures import BadData, is_fatal, short_message
from moldau.pipelines.runtime.progress import Summary
from moldau.pipelines.runtime.python_pipeline import Context, Runnable
from moldau.pipelines.runtime.restarts import Policy, Restarts
from moldau.pipelines.runtime.state import ENDED, StateFolder, Status

logger = logging.getLogger(__name__)

#: Time for which the rate of a batch is shown.
_RATE_EXPIRES_S = 5.0


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
        self._restart_at: float | None = 0.0
        self._progress_at: float | None = None
        #: The counts of rows that became dead letters.
        self.letters = frozenset(_dead_letter_counts(runnable.definition))
        self._checks = [] if runnable.definition is None else runnable.definition.all_checks

    @property
    def has_ended(self) -> bool:
        return self.status.state in ENDED

    def tick(self, spark: SparkSession, now: float) -> None:
        """Start the queries if they are due, check that they run, and record their progress."""
        if self.has_ended:
            return
        if self._restart_at is not None:
            if now >= self._restart_at:
                self._start(spark, now)
            return
        too_many = self._record_progress(now)
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
        """Stop the queries; the next start replays an unfinished batch."""
        self._record_progress()
        self._stop_queries()
        if not self.has_ended:
            self._end("stopped")

    def _start(self, spark: SparkSession, now: float) -> None:
        self._restart_at = None
        self.status.state = "starting"
        self._restarts.started(now)
        try:
            _share_cores_fairly(spark, self.status.name)
            self._queries = self.runnable.start(spark, self._context)
        except Py4JNetworkError:
            # Without its JVM the driver is useless for all pipelines: the supervisor restarts it.
            raise
        except Exception as error:  # noqa: BLE001 - user code may raise anything; one pipeline fails
            self._failed(error, now)
            return
        for query in self._queries:
            # A restarted query continues with the next batch id, or replays the last one.
            self.summaries.setdefault(_name(query), Summary(_name(query)))
        self.status.state = "running"

    def _failed(self, error: BaseException, now: float) -> None:
        self._record_progress()
        self._stop_queries()
        self.status.error = short_message(error)
        delay = None if is_fatal(error) else self._restarts.failed(now)
        if delay is None:
            logger.error("Pipeline %s failed: %s", self.status.name, self.status.error)
            self._end("failed")
            return
        logger.warning("Pipeline %s restarts in %g s: %s", self.status.name, delay, self.status.error)
        self.status.state = "waiting"
        self.status.restarts = self._restarts.count
        self._restart_at = now + delay

    def _stop_queries(self) -> None:
        for query in self._queries:
            try:
                query.stop()
            except PySparkException as error:
                logger.warning(
                    "A query of pipeline %s did not stop: %s", self.status.name, short_message(error)
                )
        self._queries = []
        self.runnable.close()

    def _end(self, state: str) -> None:
        self.status.state = state
        if state != "failed":
            self.status.error = None

    def _record_progress(self, now: float | None = None) -> str | None:
        """Record the progress; return the message about a check that failed too often."""
        too_many = None
        for query in self._queries:
            summary = self.summaries[_name(query)]
            recent = list(_progress_since(query, summary.batch))
            too_many = too_many or exceeded(self._checks, recent, summary.batch)
            if summary.add(recent):
                self.status.error = None
                self._progress_at = now
            elif now is not None and now - (self._progress_at or now) > _RATE_EXPIRES_S:
                # Spark reports no progress for an idle query.
                summary.rows_per_second = 0.0
        self._update_status()
        return too_many

    def _update_status(self) -> None:
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
        #: Whether the last status could not be written.
        self._write_failed = False

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
            if not each.has_ended and self._folder.stop_requested(name):
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
            # A full disk does not necessarily stop the queries.
            if not self._write_failed:
                logger.warning("The status of pipelines cannot be written: %s", error)
            self._write_failed = True
        else:
            self._write_failed = False


def _share_cores_fairly(spark: SparkSession, name: str) -> None:
    """Put the queries that this thread starts next into their own scheduler pool."""
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def _progress_since(query: StreamingQuery, batch: int) -> Iterable[Mapping[str, Any]]:
    """Return the progress since a batch: usually the last one, which costs less to request."""
    last: Any = query.lastProgress
    if last is None:
        return []
    return [last] if last["batchId"] <= batch + 1 else query.recentProgress


def _name(query: StreamingQuery) -> str:
    return query.name or str(query.id)


def _dead_letter_counts(definition: Definition | None) -> list[str]:
    if definition is None or definition.dead_letter is None:
        return []
    checks = (check for check in definition.all_checks if check.on_fail == "dead_letter")
    return [UNREADABLE, *(check.counter for check in checks)]
