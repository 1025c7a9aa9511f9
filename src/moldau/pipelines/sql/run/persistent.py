"""Persistent queries: they write to topics until they are terminated, and go on after a restart.

What is to run is said by the catalog; `reconcile` makes it so: it starts what is missing, stops what is gone
and starts again what has failed, after a while. A folder keeps the checkpoints, and whoever holds its lock
runs the queries: a second engine with the same folder leaves them to the first, and takes over when it ends.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from moldau.base.backoff import Backoff
from moldau.base.errors import KafkaError
from moldau.pipelines.queries import QuerySpec, start
from moldau.pipelines.sql.catalog.catalog import Catalog, PersistentQuery
from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.compile.sinks import output_names
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateAs, InsertSelect
from moldau.pipelines.sql.run.decoding import DECODING, unreadable
from moldau.pipelines.sql.run.encoding import as_records
from moldau.pipelines.sql.run.frames import Frames, Records
from moldau.pipelines.sql.run.late import LateRecords, late_topic
from moldau.pipelines.sql.run.recomputing import Recomputed

_BACKOFF = Backoff(1.0, 60.0)


@dataclass(slots=True)
class Running:
    """A query as it runs here, or as it failed."""

    query: StreamingQuery | None = None
    error: str | None = None
    failures: int = 0
    next_try: float = 0.0
    #: Records that could not be read, and why the last one could not.
    unreadable: int = 0
    reason: str | None = None
    #: Records that came too late, and went to their topic.
    late: int = 0
    last_batch: int = -1


@dataclass(frozen=True, slots=True)
class Status:
    state: str
    error: str | None = None
    rows_per_second: float = 0.0
    batches: int = 0
    unreadable: int = 0
    reason: str | None = None
    late: int = 0


class PersistentQueries:
    def __init__(self, frames: Frames, bootstrap_servers: str, folder: Path, catalog_topic: str) -> None:
        self._frames = frames
        self._catalog_topic = catalog_topic
        self._bootstrap_servers = bootstrap_servers
        self._folder = folder
        self._running: dict[str, Running] = {}
        self._lock: IO[str] | None = None

    def is_owner(self) -> bool:
        """Whether queries run here; tries to become the one that runs them."""
        if self._lock is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = (self._folder / "lock").open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._lock = file
        return True

    def reconcile(self, catalog: Catalog) -> None:
        wanted = {query.id: query for query in catalog.queries() if not query.paused}
        for query_id in set(self._running) - set(wanted):
            self.stop(query_id)
        if not self.is_owner():
            return
        for query in wanted.values():
            running = self._running.setdefault(query.id, Running())
            self._look_after(running)
            if running.query is None and time.monotonic() >= running.next_try:
                self._try_to_start(query, running, catalog)

    def _look_after(self, running: Running) -> None:
        query = running.query
        if query is None:
            return
        self._count(running, query)
        if not query.isActive:
            failure = query.exception()
            running.query = None
            self._failed(running, str(failure) if failure else "The query was stopped")

    def _try_to_start(self, query: PersistentQuery, running: Running, catalog: Catalog) -> None:
        try:
            running.query = self._start(query, catalog)
        except (KafkaError, PySparkException) as error:
            self._failed(running, str(error))

    @staticmethod
    def _failed(running: Running, error: str) -> None:
        running.error = error
        running.failures += 1
        running.next_try = time.monotonic() + _BACKOFF.seconds(running.failures)

    @staticmethod
    def _count(running: Running, query: StreamingQuery) -> None:
        """Add up the records that could not be read in the batches that were not looked at yet."""
        for progress in query.recentProgress:
            if progress.batchId <= running.last_batch or progress.numInputRows == 0:
                continue
            running.last_batch = progress.batchId
            running.failures, running.error = 0, None
            running.late += sum(one.numRowsDroppedByWatermark for one in progress.stateOperators)
            for name, row in progress.observedMetrics.items():
                if name.startswith(DECODING) and row["failed"]:
                    running.unreadable += row["failed"]
                    running.reason = row["reason"]

    def _start(self, query: PersistentQuery, catalog: Catalog) -> StreamingQuery:
        statement = next(parse(query.statement))
        sink = catalog.get(query.sink)
        if not isinstance(statement, CreateAs | InsertSelect) or sink is None:
            raise SqlError(f"The query {query.id} has nothing to write to; TERMINATE {query.id}")
        plan = compile_select(statement.select, catalog, "persist")
        names = output_names(plan, sink)
        spec = QuerySpec(
            name=query.id,
            bootstrap_servers=self._bootstrap_servers,
            checkpoint=str(self.checkpoint(query)),
            topic=sink.topic,
            output_mode="append" if plan.running == "append" else "update",
            trigger={"processingTime": query.properties.get("trigger", "1 second")},
            exactly_once=query.properties.get("exactly.once", "true") == "true",
            options=self._frames.client_options,
        )
        if plan.running == "recompute":
            changes = self._frames.changes(plan)
            return start(changes, spec, each_batch=Recomputed(self._frames, plan, sink, names))
        starting = query.properties.get("auto.offset.reset", "latest")
        read = self._frames.streams(plan, starting)
        records = as_records(self._frames.result(plan, records=read), sink, names)
        records = _with_topics(records, read, plan, sink.topic, query.id)
        late = LateRecords(self._frames, plan, late_topic(self._catalog_topic, sink.name))
        spec = replace(spec, topic=None) if "topic" in records.columns else spec
        return start(records, spec, beside=late if plan.late else None)

    def checkpoint(self, query: PersistentQuery) -> Path:
        return self._folder / f"{query.id}-{query.properties.get('created', '0')}"

    def status(self, query: PersistentQuery) -> Status:
        running = self._running.get(query.id)
        if query.paused:
            return Status("PAUSED")
        if running is None:
            return Status("STARTING" if self.is_owner() else "RUNNING ELSEWHERE")
        self._look_after(running)
        counts = (running.unreadable, running.reason, running.late)
        if running.query is None:
            return Status("ERROR" if running.error else "STARTING", running.error, 0.0, 0, *counts)
        progress = running.query.lastProgress
        if progress is None:
            return Status("RUNNING", running.error, 0.0, 0, *counts)
        speed = float(progress.processedRowsPerSecond or 0.0)
        return Status("RUNNING", running.error, speed, progress.batchId + 1, *counts)

    def streaming_query(self, query_id: str) -> StreamingQuery | None:
        running = self._running.get(query_id)
        return None if running is None else running.query

    def catch_up(self) -> None:
        """Wait until everything that is there now has been processed."""
        active = [one.query for one in self._running.values() if one.query is not None and one.query.isActive]
        # Each one waits for its trigger, so all do at once. Whoever interrupts that waits no longer.
        pool = ThreadPoolExecutor(max(1, len(active)), thread_name_prefix="moldau-sql-wait")
        try:
            list(pool.map(_process_all, active))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def stop(self, query_id: str, *, forget: PersistentQuery | None = None) -> None:
        running = self._running.pop(query_id, None)
        if running is not None and running.query is not None:
            running.query.stop()
        if forget is not None and self.is_owner():
            shutil.rmtree(self.checkpoint(forget), ignore_errors=True)

    def close(self) -> None:
        for query_id in list(self._running):
            self.stop(query_id)
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _with_topics(records: DataFrame, read: Records, plan: Plan, topic: str, query_id: str) -> DataFrame:
    """Results, and what of the sources could not be read. Where a query writes to several topics (late
    records have their own), each row names one."""
    if plan.late:
        records = records.withColumn("topic", F.lit(topic))
    for given in plan.inputs:
        letters = given.source.properties.get("dead_letter_topic")
        if letters is not None and given.view in read:
            failed = unreadable(read[given.view], given.source, letters, query_id)
            if "topic" not in records.columns:
                records = records.withColumn("topic", F.lit(topic))
            records = records.unionByName(failed, allowMissingColumns=True)
    return records


def _process_all(query: StreamingQuery) -> None:
    try:
        query.processAllAvailable()
    except StreamingQueryException:
        # Its state tells, and it is started again.
        return
