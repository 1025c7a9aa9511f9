"""Pipelines written in Python.

    from moldau.pipelines.runtime import pipeline

    @pipeline("large-orders", topic="large-orders")
    def large_orders(spark, context):
        orders = stream_topic(spark, context.bootstrap_servers, "orders")
        return orders.filter("length(value) > 100")

The function may return a frame (written to `topic`), a writer that is not started yet, queries that are, or
an application of `moldau.pipelines.streams`. It is called again whenever the pipeline is started again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
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
    #: Applications of streams that were started, which restart nothing but watch their queries.
    _applications: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, *arguments: Any) -> Any:
        """The function, as if it were not decorated."""
        return self.function(*arguments)

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        wanted = len(inspect.signature(self.function).parameters)
        return self._started(self.function(*(spark, context)[:wanted]), context)

    def close(self) -> None:
        while self._applications:
            self._applications.pop().close()

    def _started(self, result: Any, context: Context) -> list[StreamingQuery]:
        if isinstance(result, DataFrame):
            return [start(result, self._spec(context))]
        if isinstance(result, DataStreamWriter):
            folder = context.checkpoints
            return [result.queryName(self.name).option("checkpointLocation", folder).start()]
        if hasattr(result, "awaitTermination"):
            return [result]
        if hasattr(result, "queries") and hasattr(result, "start"):
            result.start()
            self._applications.append(result)
            return list(result.queries)
        if isinstance(result, Iterable):
            return [query for part in result for query in self._started(part, context)]
        raise BadDefinition(
            f"the pipeline {self.name} gives {type(result).__name__}: it should give a frame, a stream "
            "writer, queries, or an application of moldau.pipelines.streams"
        )

    def _spec(self, context: Context) -> QuerySpec:
        return QuerySpec(
            self.name,
            context.bootstrap_servers,
            context.checkpoints,
            topic=self.topic,
            output_mode=self.output_mode,
            trigger=self.trigger,
            exactly_once=self.exactly_once,
            options=self.options,
        )


def pipeline(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Pipeline]:
    """Make a function a pipeline, named after it unless told otherwise; the settings are `Pipeline`'s."""

    def make(function: Callable[..., Any]) -> Pipeline:
        return Pipeline(name or function.__name__.replace("_", "-"), function, **settings)

    return make
