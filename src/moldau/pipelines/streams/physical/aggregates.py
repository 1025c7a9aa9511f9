"""Aggregates of streams.

Spark computes counts and aggregate expressions natively: without windows, in tumbling and hopping windows,
and in session windows if only final results are needed (Spark cannot emit updates of sessions). Python
functions, sliding windows and session windows with updates run as tasks.

The watermark is the highest timestamp minus the grace period, so that Spark closes windows when Kafka Streams
does. A session of Spark ends one gap after its last record, and two sessions are separate if the gap has
passed between them. A session of Kafka Streams ends with its last record, and two sessions are separate if
more than the gap has passed; therefore the gap is one millisecond longer here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.source.late_records import closed_session, closed_window
from moldau.pipelines.streams.dsl.windows import SessionWindows, TimeWindows, takes_null_values
from moldau.pipelines.streams.physical import native
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks.aggregation import Aggregation, Functions
from moldau.pipelines.streams.tasks.task import Operator
from moldau.pipelines.streams.tasks.windowed_aggregation import WindowedAggregation
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import Aggregate

_NATIVE_RESULTS = ("long", "int", "string")


def aggregate(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, Aggregate):
        raise TypeError(f"{node.name} is not an aggregate")
    if is_native_aggregate(operation, context.value_serde.format, context.final):
        return _native(node.name, operation, ports[0], context)
    given = run_tasks([port.frame for port in ports], _task(operation, ports, context), name=node.name)
    return Result(given, "append", side_outputs=operation.windows is not None)


def is_native_aggregate(operation: Aggregate, result_format: str | None, final: bool) -> bool:
    if operation.kind == "native":
        return True
    if operation.kind != "count" or result_format not in _NATIVE_RESULTS:
        return False
    if isinstance(operation.windows, SessionWindows):
        return final
    return operation.windows is None or isinstance(operation.windows, TimeWindows)


def _task(operation: Aggregate, ports: Sequence[Port], context: OperatorContext) -> Operator:
    values = tuple(port.value_serde for port in ports)
    functions = Functions(operation, ports[0].key_serde, values, context.value_serde)
    if operation.windows is None:
        return Aggregation(functions)
    (late_topic,) = context.late_topics
    return WindowedAggregation(functions, operation.windows, final=context.final, late_topic=late_topic)


def _native(name: str, operation: Aggregate, port: Port, context: OperatorContext) -> Result:
    rows = _accepted(port.frame, operation)
    measure: Column = F.count(F.lit(1))
    if operation.kind == "native":
        rows = native.with_decoded(NativeRows(rows, port.key_serde, port.value_serde), name)
        measure = native.expression(operation.expression)
        rows = rows.withColumn("key", F.col(native.RAW_KEY))
    windows, columns = operation.windows, [F.col("key")]
    if windows is not None:
        rows = rows.withWatermark("timestamp", f"{windows.grace_ms} milliseconds")
        columns.append(_window(windows).alias("window"))
    grouped = rows.groupBy(*columns).agg(
        measure.alias("result"), F.max("timestamp").alias("newest"), F.max("partition").alias("partition")
    )
    standard = _standard(name, grouped, operation, context)
    if windows is None:
        return Result(standard, "update")
    return Result(standard, "append" if context.final else "update", late=partial(_late, operation))


def _accepted(rows: DataFrame, operation: Aggregate) -> DataFrame:
    """Drop the rows that an aggregate ignores: those without a key and, depending on the windows, a value."""
    there = F.col("key").isNotNull()
    if not takes_null_values(operation.windows):
        there = there & F.col("value").isNotNull()
    return rows.filter(there)


def _late(operation: Aggregate, rows: DataFrame, watermark_ms: int) -> DataFrame:
    windows, time = operation.windows, F.col("timestamp")
    if isinstance(windows, SessionWindows):
        closed = closed_session(time, windows.gap_ms, watermark_ms)
    elif isinstance(windows, TimeWindows):
        closed = closed_window(time, windows.size_ms, windows.advance_ms, watermark_ms)
    else:
        raise TypeError(f"Spark has no {type(windows).__name__}")
    return _accepted(rows, operation).filter(closed)


def _window(windows: object) -> Column:
    if isinstance(windows, SessionWindows):
        return F.session_window("timestamp", f"{windows.gap_ms + 1} milliseconds")
    if isinstance(windows, TimeWindows):
        return F.window("timestamp", f"{windows.size_ms} milliseconds", f"{windows.advance_ms} milliseconds")
    raise TypeError(f"Spark has no {type(windows).__name__}")


def _standard(name: str, grouped: DataFrame, operation: Aggregate, context: OperatorContext) -> DataFrame:
    key, timestamp = F.col("key"), F.col("newest")
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    if isinstance(operation.windows, SessionWindows):
        last = end - F.lit(operation.windows.gap_ms + 1)
        key = F.concat(key, _big_endian(last), _big_endian(start))
    elif operation.windows is not None:
        # Kafka Streams has no windows that start before the epoch.
        grouped = grouped.filter(start >= 0)
        key = F.concat(key, _big_endian(start))
    made = {
        "key": key,
        "value": native.encoded(F.col("result"), context.value_serde, f"the result of {name}"),
        "timestamp": timestamp,
        "headers": F.lit(None).cast("array<struct<key: string, value: binary>>"),
        "topic": F.lit(None).cast("string"),
        "partition": F.col("partition"),
        "offset": F.lit(None).cast("long"),
        "seq": F.lit(0),
    }
    return grouped.select(*(made[column].alias(column) for column in COLUMNS))


def _big_endian(column: Column) -> Column:
    return F.unhex(F.lpad(F.hex(column), 16, "0"))
