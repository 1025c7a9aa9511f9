"""Pipelines written in Python.

    from moldau.pipelines.runtime import pipeline

    @pipeline("large-orders", topic="large-orders")
    def large_orders(spark, context):
        orders = stream_topic(spark, context.bootstrap_servers, "orders", context.kafka_options)
        return orders.filter("length(value) > 100")

The function may return a data frame (written to `topic`), a stream writer that is not started, queries that
are started, a `KafkaStreams` application, or several of these, each with its own name and checkpoint. It is
called again at every restart of the pipeline.
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
from moldau.pipelines.runtime.definition import BadDefinition, Definition


@dataclass(frozen=True, slots=True)
class Context:
    """The environment of a pipeline."""

    bootstrap_servers: str
    #: The folder for the checkpoints of this pipeline.
    checkpoints: str
    #: Further properties of the client, such as those of TLS and SASL.
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def kafka_options(self) -> dict[str, str]:
        """The properties of the client as options of source and sink."""
        return {f"kafka.{name}": value for name, value in self.client.items()}


class Runnable(Protocol):
    """A pipeline that the host can run."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> Definition | None:
        """The YAML definition, if the pipeline has one."""

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]: ...

    def close(self) -> None:
        """Release everything but the queries, which the host stops."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A function that returns queries, or a data frame and how to write it."""

    name: str
    function: Callable[..., Any]
    topic: str | None = None
    output_mode: OutputMode = "append"
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "1 second"})
    exactly_once: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    #: The trigger of a run, which overrides all others.
    trigger_of_run: Mapping[str, Any] | None = None
    #: Started `KafkaStreams` applications, to be closed with the queries.
    _applications: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, *arguments: Any) -> Any:
        """Call the undecorated function."""
        return self.function(*arguments)

    @property
    def definition(self) -> None:
        return None

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
            self._refuse_available_now("queries that it has started")
            return [result]
        if hasattr(result, "queries") and hasattr(result, "start"):
            self._refuse_available_now("a KafkaStreams application")
            result.start()
            self._applications.append(result)
            return list(result.queries)
        raise BadDefinition(
            f"the pipeline {self.name} returns {type(result).__name__}; it must return a data frame, a "
            "stream writer, queries, or a KafkaStreams application"
        )

    def _refuse_available_now(self, what: str) -> None:
        """Refuse `--available-now` for a result that never ends by itself."""
        if self.trigger_of_run is not None and self.trigger_of_run.get("availableNow"):
            raise BadDefinition(
                f"the pipeline {self.name} returns {what}, which would run until stopped; omit "
                "--available-now, or return a data frame or a stream writer"
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
            options={**context.kafka_options, **self.options},
        )


def _parts(result: Any) -> list[Any]:
    """Flatten the result of a function: lists may contain lists."""
    if isinstance(result, list | tuple | Iterator):
        return [part for each in result for part in _parts(each)]
    return [result]


def pipeline(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Pipeline]:
    """Decorate a function as a pipeline, by default named after it; the settings are those of `Pipeline`."""

    def make(function: Callable[..., Any]) -> Pipeline:
        return Pipeline(name or function.__name__.replace("_", "-"), function, **settings)

    return make
