"""Persistent queries: they write to topics until they are terminated, and resume after a restart.

The catalog says which queries should run. `reconcile` starts the ones that are missing, stops the ones that
were dropped, and restarts failed ones after a back-off. The checkpoints are in a directory whose lock decides
which engine runs the queries: a second engine with the same directory does not run them, and takes over when
the first one ends.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from moldau.base.backoff import Backoff
from moldau.base.errors import KafkaError
from moldau.pipelines.sql.catalog.catalog import Catalog, PersistentQuery
from moldau.pipelines.sql.run.frames import Frames
from moldau.pipelines.sql.run.records import DECODING
from moldau.pipelines.sql.run.streaming import start_query

_BACKOFF = Backoff(1.0, 60.0)


@dataclass(slots=True)
class Running:
    """A query that runs here, or has failed."""

    query: StreamingQuery | None = None
    error: str | None = None
    failures: int = 0
    next_attempt: float = 0.0
    #: The number of records that could not be deserialized, and the reason for the last one.
    unreadable: int = 0
    reason: str | None = None
    #: The number of late records, which were written to their topic.
    late: int = 0
    last_batch: int = -1

    def fail(self, error: str) -> None:
        self.error = error
        self.failures += 1
        self.next_attempt = time.monotonic() + _BACKOFF.seconds(self.failures)

    def check(self) -> None:
        """Update the counts, and detect a failure."""
        query = self.query
        if query is None:
            return
        self._count(query)
        if not query.isActive:
            failure = query.exception()
            self.query = None
            self.fail(str(failure) if failure else "The query was stopped")

    def _count(self, query: StreamingQuery) -> None:
        """Add the unreadable and late records of the batches that were not counted yet."""
        for progress in query.recentProgress:
            if progress.batchId <= self.last_batch or progress.numInputRows == 0:
                continue
            self.last_batch = progress.batchId
            self.failures, self.error = 0, None
            self.late += sum(one.numRowsDroppedByWatermark for one in progress.stateOperators)
            for name, row in progress.observedMetrics.items():
                if name.startswith(DECODING) and row["failed"]:
                    self.unreadable += row["failed"]
                    self.reason = row["reason"]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a query for SHOW and DESCRIBE."""

    state: str
    error: str | None = None
    rows_per_second: float = 0.0
    batches: int = 0
    unreadable: int = 0
    reason: str | None = None
    late: int = 0


class _DirectoryLock:
    """An exclusive lock of a directory, held until it is released or the process ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Try to acquire the lock. Return whether it is held."""
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            file = (self._directory / "lock").open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class PersistentQueries:
    """Runs the persistent queries of a catalog."""

    def __init__(self, frames: Frames, bootstrap_servers: str, directory: Path, catalog_topic: str) -> None:
        self._frames = frames
        self._catalog_topic = catalog_topic
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._running: dict[str, Running] = {}
        self._lock = _DirectoryLock(directory)

    def reconcile(self, catalog: Catalog) -> None:
        """Start, stop and restart queries according to the catalog."""
        wanted = {query.id: query for query in catalog.queries() if not query.paused}
        for query_id in set(self._running) - set(wanted):
            self.stop(query_id)
        if not self._lock.acquire():
            return
        for query in wanted.values():
            running = self._running.setdefault(query.id, Running())
            running.check()
            if running.query is None and time.monotonic() >= running.next_attempt:
                self._try_to_start(query, running, catalog)

    def _try_to_start(self, query: PersistentQuery, running: Running, catalog: Catalog) -> None:
        try:
            running.query = start_query(
                self._frames,
                query,
                catalog,
                bootstrap_servers=self._bootstrap_servers,
                checkpoint=str(self.checkpoint(query)),
                catalog_topic=self._catalog_topic,
            )
        except (KafkaError, PySparkException) as error:
            running.fail(str(error))

    def checkpoint(self, query: PersistentQuery) -> Path:
        return self._directory / f"{query.id}-{query.properties.get('created', '0')}"

    def status(self, query: PersistentQuery) -> Status:
        running = self._running.get(query.id)
        if query.paused:
            return Status("PAUSED")
        if running is None:
            return Status("STARTING" if self._lock.acquire() else "RUNNING ELSEWHERE")
        running.check()
        counts = (running.unreadable, running.reason, running.late)
        if running.query is None:
            return Status("ERROR" if running.error else "STARTING", running.error, 0.0, 0, *counts)
        progress = running.query.lastProgress
        if progress is None:
            return Status("RUNNING", running.error, 0.0, 0, *counts)
        speed = float(progress.processedRowsPerSecond or 0.0)
        return Status("RUNNING", running.error, speed, progress.batchId + 1, *counts)

    def catch_up(self) -> None:
        """Wait until all available records have been processed."""
        active = [one.query for one in self._running.values() if one.query is not None and one.query.isActive]
        # Each query waits for its trigger, so wait for all concurrently. An interrupt ends the wait.
        pool = ThreadPoolExecutor(max(1, len(active)), thread_name_prefix="moldau-sql-wait")
        try:
            list(pool.map(_process_all, active))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def stop(self, query_id: str, *, forget: PersistentQuery | None = None) -> None:
        """Stop a query; with `forget`, delete its checkpoint."""
        running = self._running.pop(query_id, None)
        if running is not None and running.query is not None:
            running.query.stop()
        if forget is not None and self._lock.acquire():
            shutil.rmtree(self.checkpoint(forget), ignore_errors=True)

    def close(self) -> None:
        for query_id in list(self._running):
            self.stop(query_id)
        self._lock.release()


def _process_all(query: StreamingQuery) -> None:
    try:
        query.processAllAvailable()
    except StreamingQueryException:
        # The failure is reported by the status, and the query is restarted.
        return
