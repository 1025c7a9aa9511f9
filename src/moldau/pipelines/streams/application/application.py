"""`KafkaStreams`: a topology that runs. Each of its stages is a Spark query; together they are the
application.

    with KafkaStreams(builder.build(), {"application.id": "counts", "bootstrap.servers": "…"}) as streams:
        streams.await_termination()

Starting creates the internal topics that are missing and checks what is there. A watcher looks after the
queries: if one fails, all are stopped and the application is in the state ERROR, with the exception that
`await_termination` raises. State and positions are in checkpoints below `state.dir`, so an
application that is started again goes on where it was; without its `state.dir` it begins anew.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
import time
from collections.abc import Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.pipelines.queries import QuerySpec
from moldau.pipelines.queries import start as start_query
from moldau.pipelines.spark.user_modules import pickle_user_modules_by_value
from moldau.pipelines.streams.application.checkpoints import check_checkpoints
from moldau.pipelines.streams.application.preparation import (
    Prepared,
    client_settings,
    prepare,
    repartition_readers,
)
from moldau.pipelines.streams.application.purging import done_with
from moldau.pipelines.streams.application.readonly_stores import ReadOnlyStore, open_readonly
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.application.starting import Runs, error_of
from moldau.pipelines.streams.application.store_access import store_location
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.physical.late_rows import LateRows
from moldau.pipelines.streams.physical.stage_frames import StageBuilder, StageFrame
from moldau.pipelines.streams.topology.stages import Stage, levels
from moldau.pipelines.streams.topology.topology import Topology

_FAILURE = re.compile(r"(?:StreamsException|TopologyException|SerializationError): (.*)")
_WATCH_S = 0.5


class State(Enum):
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    ERROR = "ERROR"


class KafkaStreams:
    """One application. Without a session of yours it has one of its own."""

    def __init__(
        self, topology: Topology, config: Mapping[str, Any], spark: SparkSession | None = None
    ) -> None:
        self.topology = topology
        self.settings = StreamsSettings.of(config)
        self._spark = spark
        self._owns_session = False
        self._runs = Runs()
        self._state = State.CREATED
        self._failure: StreamsException | None = None
        self._watcher: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def state(self) -> State:
        return self._state

    @property
    def queries(self) -> list[StreamingQuery]:
        """Spark's queries, for those who want to know more."""
        return list(self._runs.queries)

    @property
    def exception(self) -> StreamsException | None:
        return self._failure

    def start(self) -> None:
        """Make what is missing and start all stages."""
        if self._state is not State.CREATED:
            raise StreamsException(
                f"{self.settings.application_id} was started before; make a new KafkaStreams"
            )
        prepared = self._prepared()
        self._state = State.RUNNING
        trigger = {"processingTime": f"{self.settings.commit_interval_ms} milliseconds"}
        try:
            for stage in prepared.stages:
                self._start(stage, prepared, trigger)
        except Exception:
            self._stop_queries()
            self._state = State.ERROR
            raise
        self._watcher = threading.Thread(
            target=self._watch, args=(repartition_readers(prepared),), name="streams-watcher", daemon=True
        )
        self._watcher.start()

    def run_available(self) -> None:
        """Process what is in the topics now and return: for backfills and scheduled runs. Stages run behind
        those whose topics they read, so that all is done at the end."""
        prepared = self._prepared()
        self._state = State.RUNNING
        for level in levels(prepared.stages):
            self._runs.clear()
            for stage in level:
                self._start(stage, prepared, {"availableNow": True})
            for query in self.queries:
                self._await_end(query)
        self._state = State.NOT_RUNNING

    def _await_end(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            again = self._runs.revive(query)
            if again is not None:
                return self._await_end(again)
            self._stop_queries()
            self._state = State.ERROR
            raise _failure(query.name or "a stage", error) from error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the application has ended; raises what it failed with."""
        if self._watcher is not None:
            self._watcher.join(timeout)
        if self._failure is not None:
            raise self._failure
        return self._state is not State.RUNNING

    def close(self) -> None:
        """Stop all queries."""
        if self._state is State.RUNNING:
            self._state = State.PENDING_SHUTDOWN
        self._stopping.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()
        self._stop_queries()
        if self._owns_session and self._spark is not None:
            self._spark.stop()
            self._spark = None
        if self._state is not State.ERROR:
            self._state = State.NOT_RUNNING

    def store(self, name: str) -> ReadOnlyStore:
        """A store to be asked, by the name that the program gave it, whether the application runs or not.
        What it shows is committed. Close it when it is not needed any more."""
        return open_readonly(
            client_settings(self.settings), store_location(self.topology, self.settings, name)
        )

    def clean_up(self) -> None:
        """Forget state and positions; the topics stay."""
        if self._state is State.RUNNING:
            raise StreamsException(f"{self.settings.application_id} is running: close it before clean_up")
        shutil.rmtree(Path(self.settings.state_dir) / self.settings.application_id, ignore_errors=True)

    def explain(self) -> str:
        """Which Spark queries will run, and of each what is native, what is Python, and Spark's plan."""
        from moldau.pipelines.streams.application.explain import explanation

        prepared = prepare(self.topology, self.settings, create=False)
        return explanation(
            [(stage, self._frame(stage, prepared, bounded=False)) for stage in prepared.stages], prepared
        )

    def __enter__(self) -> KafkaStreams:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepared(self) -> Prepared:
        pickle_user_modules_by_value()
        prepared = prepare(self.topology, self.settings, create=True)
        check_checkpoints(prepared.stages, prepared.planner)
        return prepared

    def _session(self) -> SparkSession:
        if self._spark is None:
            from moldau.pipelines.spark.session import active_session, session

            self._owns_session = active_session() is None
            self._spark = session(self.settings.application_id)
        return self._spark

    def _frame(self, stage: Stage, prepared: Prepared, *, bounded: bool) -> StageFrame:
        builder = StageBuilder(self._session(), prepared.planner, prepared.stores, bounded)
        return builder.build(stage)

    def _start(self, stage: Stage, prepared: Prepared, trigger: Mapping[str, Any]) -> None:
        made = self._frame(stage, prepared, bounded="availableNow" in trigger)
        settings = self.settings
        spec = QuerySpec(
            name=f"{settings.application_id}-{stage.name}",
            bootstrap_servers=settings.bootstrap_servers,
            checkpoint=settings.checkpoint(stage.name),
            output_mode=made.output_mode,
            trigger=trigger,
            exactly_once=settings.exactly_once,
            options={f"kafka.{key}": value for key, value in settings.client.items()},
        )
        beside = None
        if made.late is not None:
            builder = StageBuilder(self._session(), prepared.planner, prepared.stores)
            beside = LateRows(builder, stage, made.late)
        self._runs.start(spec.name, partial(start_query, made.frame, spec, beside=beside))

    def _watch(self, repartitions: Mapping[str, int]) -> None:
        purged = time.monotonic()
        while not self._stopping.wait(_WATCH_S):
            failed = next((query for query in self.queries if error_of(query) is not None), None)
            if failed is not None and self._runs.revive(failed) is None:
                self._failure = _failure(failed.name or "a stage", error_of(failed))
                self._state = State.ERROR
                self._stop_queries()
                return
            if repartitions and time.monotonic() - purged > self.settings.purge_interval_ms / 1000:
                self._purge(repartitions)
                purged = time.monotonic()

    def _purge(self, repartitions: Mapping[str, int]) -> None:
        """Records that stay until the next time, because a broker is away, do no harm."""
        places = done_with((query.lastProgress or {} for query in self.queries), repartitions)
        if places:
            with contextlib.suppress(KafkaError), AdminClient(client_settings(self.settings)) as admin:
                admin.delete_records(places)

    def _stop_queries(self) -> None:
        for query in self.queries:
            if query.isActive:
                query.stop()
        deadline = time.monotonic() + 30
        while any(query.isActive for query in self.queries) and time.monotonic() < deadline:
            time.sleep(0.05)


def _failure(name: str, error: Exception | None) -> StreamsException:
    """What went wrong in the user's words, if a worker said so; Spark's own otherwise."""
    said = _FAILURE.findall(str(error))
    return StreamsException(f"{name}: {said[-1] if said else error}")
