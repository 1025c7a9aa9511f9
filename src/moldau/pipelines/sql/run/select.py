"""Executes SELECT: pull queries return the current state, push queries return changes until they are
closed."""

from __future__ import annotations

import queue
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.compile.split_query import needs_split
from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.statements import Select
from moldau.pipelines.sql.results import Result, Rows
from moldau.pipelines.sql.run.context import Context, spark_errors

_TRIGGER = "100 milliseconds"
#: The maximum number of records per batch of a push query.
_MAX_RECORDS = 20_000
_MAX_BATCHES = 4
_POLL_S = 0.2

Row = Sequence[Any]


def select(context: Context, statement: Select) -> Result:
    return _push(context, statement) if statement.emit else _pull(context, statement)


def _pull(context: Context, statement: Select) -> Result:
    plan = compile_select(statement, context.catalog, "pull")
    columns = [column.name for column in plan.columns]
    with spark_errors(statement.place):
        found = context.lookups.frame(plan, statement, context.catalog)
        if found is not None:
            return Rows(columns, context.frames.result(plan, records={plan.inputs[0].view: found}).collect())
        frame = context.frames.result(plan)
    return Rows(columns, _pulled(frame, statement.place))


def _pulled(frame: DataFrame, place: Place) -> Iterator[Row]:
    with spark_errors(place):
        yield from frame.toLocalIterator()


def _push(context: Context, statement: Select) -> Result:
    if needs_split(statement, context.catalog):
        raise SqlError(
            "A push query cannot aggregate a stream-stream join",
            statement.place,
            "First CREATE STREAM j AS SELECT … JOIN …; then SELECT … FROM j GROUP BY … EMIT CHANGES;",
        )
    plan = compile_select(statement, context.catalog, "push")
    starting = context.settings["auto.offset.reset"]
    notes = []
    if starting == "latest" and not plan.inputs[0].source.is_table:
        notes.append("Only new records are shown. SET 'auto.offset.reset'='earliest'; to see all records.")
    with spark_errors(statement.place):
        push = _Push(context, plan, starting)
    return Rows([column.name for column in plan.columns], push.rows(), live=True, notes=notes)


class _Push:
    """A streaming query whose rows are read with an iterator."""

    def __init__(self, context: Context, plan: Plan, starting: str) -> None:
        self._batches: queue.Queue[list[Row]] = queue.Queue(_MAX_BATCHES)
        self._plan, self._context = plan, context
        self._ended = False
        self._folder = tempfile.mkdtemp(prefix="moldau-push-")
        self._query = self._start(starting)

    def _start(self, starting: str) -> StreamingQuery:
        frames, plan = self._context.frames.limited(_MAX_RECORDS), self._plan
        if plan.running == "recompute":
            frame = frames.changes(plan)
            give = self._differences(lambda: frames.result(plan))
        else:
            frame, give = frames.result(plan, starting), self._all
        mode = "update" if plan.running == "update" else "append"
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", self._folder)
        return writer.trigger(processingTime=_TRIGGER).foreachBatch(give).start()

    def _all(self, batch: DataFrame, _: int) -> None:
        self._put(list(batch.collect()))

    def _differences(self, compute: Callable[[], DataFrame]) -> Callable[[DataFrame, int], None]:
        """Return a batch function that emits the rows that were not in the previous result."""
        known: set[str] = set()

        def give(_: DataFrame, __: int) -> None:
            nonlocal known
            rows = compute().collect()
            self._put([row for row in rows if repr(row) not in known])
            known = {repr(row) for row in rows}

        return give

    def _put(self, rows: list[Row]) -> None:
        while rows and not self._ended:
            try:
                self._batches.put(rows, timeout=_POLL_S)
                return
            except queue.Full:
                continue

    def rows(self) -> Iterator[Row]:
        left = self._plan.limit
        try:
            while left is None or left > 0:
                for row in self._next_batch():
                    if left is not None:
                        left -= 1
                        if left < 0:
                            break
                    yield row
        finally:
            self._end()

    def _next_batch(self) -> list[Row]:
        while True:
            try:
                return self._batches.get(timeout=_POLL_S)
            except queue.Empty:
                if not self._query.isActive:
                    failure = str(self._query.exception()).partition("\n")[0]
                    reason = failure.rpartition("terminated with exception: ")[2]
                    raise SqlError(f"The query failed: {reason}") from None

    def _end(self) -> None:
        self._ended = True
        self._query.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def explained(context: Context, statement: Select) -> tuple[Plan, DataFrame]:
    """Return the plan of a SELECT and its frame, for EXPLAIN."""
    plan = compile_select(
        replace(statement, limit=None), context.catalog, "push" if statement.emit else "pull"
    )
    with spark_errors(statement.place):
        return plan, context.frames.result(plan)
