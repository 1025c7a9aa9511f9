"""Runs the operators of `streams.tasks` inside Spark, with Spark's state store.

Rows are grouped by the partition they were read from, so that a group is a task of Kafka Streams: one
sequence of records and one set of stores. Spark calls the operator once per group and batch, not once per
key. Each key used in a batch is read from the state store once and written once, many keys at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from moldau.pipelines.queries import without_null_headers
from moldau.pipelines.streams.physical.ports import HEADERS_TYPE
from moldau.pipelines.streams.physical.stored_map import StoredMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, run

#: A pandas data frame; pandas has no type stubs.
Frame = Any

_OUT_COLUMNS = ["key", "value", "ts", "headers", "target", "child", "partition", "seq"]
_OUT_SCHEMA = (
    f"key binary, value binary, ts long, headers {HEADERS_TYPE}, target string, child string, "
    "partition int, seq int"
)


def run_tasks(
    frames: Sequence[DataFrame], operator: Operator, *, name: str, wall_clock: bool = False
) -> DataFrame:
    """Run an operator over its inputs. The result has the standard columns, `target` and `child`. With
    `wall_clock`, Spark also runs batches without records, for wall-clock punctuators."""
    operator.name = name
    processor = _SparkTask(operator, wall_clock)
    mode = "ProcessingTime" if wall_clock else "None"
    ports = reduce(DataFrame.union, [_port(frame, number) for number, frame in enumerate(frames)])
    given = ports.groupBy("task").transformWithStateInPandas(processor, _OUT_SCHEMA, "Append", mode)
    return given.select(
        "key",
        "value",
        F.timestamp_millis("ts").alias("timestamp"),
        "headers",
        F.lit(None).cast("string").alias("topic"),
        "partition",
        F.lit(None).cast("long").alias("offset"),
        "seq",
        "target",
        "child",
    )


def _port(frame: DataFrame, number: int) -> DataFrame:
    return without_null_headers(frame).select(
        F.col("partition").alias("task"),
        F.lit(number).alias("port"),
        "key",
        "value",
        F.unix_millis("timestamp").alias("ts"),
        "headers",
        "topic",
        "offset",
        "seq",
    )


class _SparkTask(StatefulProcessor):
    """Runs an operator as a `StatefulProcessor`."""

    def __init__(self, operator: Operator, wall_clock: bool) -> None:
        self._operator = operator
        self._wall_clock = wall_clock

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._maps = {
            name: StoredMap(handle.getMapState(name, "key binary", "value binary"))
            for name in self._operator.maps
        }

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Frame]:
        task = int(key[0])
        given = [row for frame in rows for row in _rows(frame, task)]
        return self._run(task, given, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Frame]:
        return self._run(int(key[0]), [], timerValues)

    def _run(self, task: int, rows: Sequence[Row], timers: TimerValues) -> Iterator[Frame]:
        now_ms = timers.getCurrentProcessingTimeInMs() if self._wall_clock else int(time.time() * 1000)
        given = run(self._operator, task, self._maps, rows, now_ms)
        if self._wall_clock:
            self._set_timer(self._operator.next_tick())
        yield _frame(given, task)

    def _set_timer(self, due_ms: int | None) -> None:
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if due_ms is not None:
            self._handle.registerTimer(due_ms)

    def close(self) -> None:
        return


def _rows(frame: Frame, task: int) -> Iterator[Row]:
    for row in frame.itertuples(index=False):
        headers = () if row.headers is None else [(each["key"], each["value"]) for each in row.headers]
        yield Row(row.port, row.key, row.value, row.ts, headers, row.topic, task, row.offset, row.seq)


def _frame(given: Sequence[Out], task: int) -> Frame:
    import pandas as pd  # type: ignore[import-untyped]

    rows = [
        (
            each.key,
            each.value,
            each.timestamp,
            _headers(each),
            each.target,
            each.child,
            _partition(each, task),
            seq,
        )
        for seq, each in enumerate(given)
    ]
    return pd.DataFrame(rows, columns=_OUT_COLUMNS)


def _partition(out: Out, task: int) -> int:
    return task if out.partition is None else out.partition


def _headers(out: Out) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in out.headers] or None
