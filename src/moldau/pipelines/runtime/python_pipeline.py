"""Pipelines written in Python.

    from moldau.pipelines.runtime import pipeline

    @pipeline("large-orders", topic="large-orders")
    def large_orders(spark, context):
        orders = stream_topic(spark, context.bootstrap_servers, "orders")
        return orders.filter("length(value) > 100")

The function may return a frame (written to `topic`), a writer that is not started yet, queries that are, or
an application of `moldau.pipelines.streams`; or several of them: each has a name and a checkpoint of its own.
It is called again whenever the pipeline is started again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from moldau.pipelines.queries import OutputMode, QuerySpec, start
from moldau.pipelines.runtime.definition import BadDefinition


@dataclass(frozen=True, slots=True)
class Context:
    """What a pipeline is told about where it runs."""

    bootstrap_servers: str
    #: A folder of this pipeline, for checkpoints.
    checkpoints: str


class Runnable(Protocol):
    """Something that becomes queries."""

    @property
    def name(self) -> str: ...

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]: ...

    def close(self) -> None:
        """End what looks after the queries; they themselves are stopped by the host."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A function that makes queries, and how its frame is written."""

    name: str
    function: Callable[..., Any]
    topic: str | None = None
    output_mode: OutputMode = "append"
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "1 second"})
    exactly_once: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    #: The trigger of a run, which takes the place of all others.
    trigger_of_run: Mapping[str, Any] | None = None
    #: Applications of streams that were started, which restart nothing but watch their queries.
    _applications: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, *arguments: Any) -> Any:
        """The function, as if it were not decorated."""
        return self.function(*arguments)

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        wanted = len(inspect.signature(self.function).parameters)
        result = self.function(*(spark, context)[:wanted])
        parts = _parts(result)
        queries: list[StreamingQuery] = []
        try:
            for index, part in enumerate(parts):
                queries += self._started(part, context, f"-{index}" if index else "")
        except BaseException:
            for query in queries:
                query.stop()
            raise
        return queries

    def close(self) -> None:
        while self._applications:
            self._applications.pop().close()

    def _started(self, result: Any, context: Context, suffix: str) -> list[StreamingQuery]:
        if isinstance(result, DataFrame):
            return [start(result, self._spec(context, suffix))]
        if isinstance(result, DataStreamWriter):
            writer = result if self.trigger_of_run is None else result.trigger(**self.trigger_of_run)
            named = writer.queryName(self.name + suffix)
            return [named.option("checkpointLocation", context.checkpoints + suffix).start()]
        if hasattr(result, "awaitTermination"):
            self._refuse_to_end("queries that it has started")
            return [result]
        if hasattr(result, "queries") and hasattr(result, "start"):
            self._refuse_to_end("an application of streams")
            result.start()
            self._applications.append(result)
            return list(result.queries)
        raise BadDefinition(
            f"the pipeline {self.name} gives {type(result).__name__}: it should give a frame, a stream "
            "writer, queries, or an application of moldau.pipelines.streams"
        )

    def _refuse_to_end(self, what: str) -> None:
        """Rather than run for ever where somebody waits for the end."""
        if self.trigger_of_run is not None and self.trigger_of_run.get("availableNow"):
            raise BadDefinition(
                f"the pipeline {self.name} gives {what}, which run until they are stopped: leave "
                "--available-now out, or give a frame or a stream writer"
            )

    def _spec(self, context: Context, suffix: str) -> QuerySpec:
        return QuerySpec(
            self.name + suffix,
            context.bootstrap_servers,
            context.checkpoints + suffix,
            topic=self.topic,
            output_mode=self.output_mode,
            trigger=self.trigger_of_run or self.trigger,
            exactly_once=self.exactly_once,
            options=self.options,
        )


def _parts(result: Any) -> list[Any]:
    """What a function gave, one by one: lists may hold lists."""
    if isinstance(result, list | tuple | Iterator):
        return [part for each in result for part in _parts(each)]
    return [result]


def pipeline(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Pipeline]:
    """Make a function a pipeline, named after it unless told otherwise; the settings are `Pipeline`'s."""

    def make(function: Callable[..., Any]) -> Pipeline:
        return Pipeline(name or function.__name__.replace("_", "-"), function, **settings)

    return make
