"""`KafkaStreams`: a running topology. Each stage of the topology is a Spark query.

    with KafkaStreams(builder.build(), {"application.id": "counts", "bootstrap.servers": "…"}) as streams:
        streams.await_termination()

Starting an application checks its topics and creates the internal topics that are missing. A watcher thread
monitors the queries: if one fails, all are stopped, the application is in the state ERROR, and
`await_termination` raises the exception. State and offsets are stored in checkpoints under `state.dir`, from
which a restarted application resumes; without them it starts over.
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
from moldau.pipelines.streams.application.explain import explanation
from moldau.pipelines.streams.application.interactive_queries import (
    ReadOnlyStore,
    open_store,
    store_location,
)
from moldau.pipelines.streams.application.internal_topics import purgeable_offsets
from moldau.pipelines.streams.application.preparation import (
    Prepared,
    client_settings,
    prepare,
    repartition_readers,
)
from moldau.pipelines.streams.application.stage_queries import StageQueries, error_of
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.physical.stage_frames import LateRows, StageBuilder, StageFrame
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.stages import Stage, levels
from moldau.pipelines.streams.topology.topology import Topology

_FAILURE = re.compile(r"(?:StreamsException|TopologyException|SerializationError): (.*)")
_WATCH_INTERVAL_S = 0.5


class State(Enum):
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    ERROR = "ERROR"


class KafkaStreams:
    """A streams application. Without a Spark session it creates its own."""

    def __init__(
        self, topology: Topology, config: Mapping[str, Any], spark: SparkSession | None = None
    ) -> None:
        self.topology = topology
        self.settings = StreamsSettings.of(config)
        self._spark = spark
        self._owns_session = False
        self._stages = StageQueries()
        self._state = State.CREATED
        self._failure: StreamsException | None = None
        self._watcher: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def state(self) -> State:
        return self._state

    @property
    def queries(self) -> list[StreamingQuery]:
        """The Spark queries of the application."""
        return list(self._stages.queries)

    @property
    def exception(self) -> StreamsException | None:
        return self._failure

    def start(self) -> None:
        """Create missing internal topics and start all stages."""
        if self._state is not State.CREATED:
            raise StreamsException(
                f"{self.settings.application_id} has already been started; create a new KafkaStreams"
            )
        prepared = self._prepared()
        self._state = State.RUNNING
        trigger = {"processingTime": f"{self.settings.commit_interval_ms} milliseconds"}
        try:
            for stage in prepared.stages:
                self._start(stage, prepared, trigger)
        except Exception:
            self._stages.stop()
            self._state = State.ERROR
            raise
        self._watcher = threading.Thread(
            target=self._watch, args=(repartition_readers(prepared),), name="streams-watcher", daemon=True
        )
        self._watcher.start()

    def run_available(self) -> None:
        """Process the records that are in the topics now, and return: for backfills and scheduled runs. A
        stage runs after the stages that write its topics, so that all records are processed to the end."""
        prepared = self._prepared()
        self._state = State.RUNNING
        for level in levels(prepared.stages):
            self._stages.clear()
            for stage in level:
                self._start(stage, prepared, {"availableNow": True})
            for query in self.queries:
                self._await_end(query)
        self._state = State.NOT_RUNNING

    def _await_end(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            again = self._stages.restart(query)
            if again is not None:
                return self._await_end(again)
            self._stages.stop()
            self._state = State.ERROR
            raise _failure(query.name or "a stage", error) from error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the application has ended, and raise its exception if it has failed."""
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
        self._stages.stop()
        if self._owns_session and self._spark is not None:
            self._spark.stop()
            self._spark = None
        if self._state is not State.ERROR:
            self._state = State.NOT_RUNNING

    def store(self, name: str) -> ReadOnlyStore:
        """Open a store for interactive queries, by the name given in the program; the application need not be
        running. The store shows committed data. Close it after use."""
        return open_store(client_settings(self.settings), store_location(self.topology, self.settings, name))

    def clean_up(self) -> None:
        """Delete the local state and offsets; topics are kept."""
        if self._state is State.RUNNING:
            raise StreamsException(f"{self.settings.application_id} is running: close it before clean_up")
        shutil.rmtree(Path(self.settings.state_dir) / self.settings.application_id, ignore_errors=True)

    def explain(self) -> str:
        """Describe the Spark queries of the application: what is native, what runs in Python, and Spark's
        plans."""
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
        self._stages.start(spec.name, partial(start_query, made.frame, spec, beside=beside))

    def _watch(self, repartitions: Mapping[str, int]) -> None:
        purged = time.monotonic()
        while not self._stopping.wait(_WATCH_INTERVAL_S):
            failed = self._stages.failed()
            if failed is not None and self._stages.restart(failed) is None:
                self._failure = _failure(failed.name or "a stage", error_of(failed))
                self._state = State.ERROR
                self._stages.stop()
                return
            if repartitions and time.monotonic() - purged > self.settings.purge_interval_ms / 1000:
                self._purge(repartitions)
                purged = time.monotonic()

    def _purge(self, repartitions: Mapping[str, int]) -> None:
        """Delete processed records of repartition topics. If a broker is unavailable, the next purge deletes
        them."""
        offsets = purgeable_offsets((query.lastProgress or {} for query in self.queries), repartitions)
        if offsets:
            with contextlib.suppress(KafkaError), AdminClient(client_settings(self.settings)) as admin:
                admin.delete_records(offsets)


def _failure(name: str, error: Exception | None) -> StreamsException:
    """Return the exception of a failed stage, with the message of our own exception if a worker raised
    one."""
    messages = _FAILURE.findall(str(error))
    return StreamsException(f"{name}: {messages[-1] if messages else error}")
