"""Joins computed by Spark's own join operator: stream-stream joins, and joins with global tables.

Two records with the same key are joined if their timestamps are within the join window, both ends inclusive.
The watermark delay is the longer side of the window plus the grace period, so that Spark drops no record that
Kafka Streams would still join. In left and outer joins a record without a match is emitted when the watermark
passes the end of its window. Spark's watermark follows the slower of the two streams, where Kafka Streams
follows the faster one.

A global table is read again for every batch and broadcast to all tasks, so the stream's records keep their
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.queries import without_null_headers
from moldau.pipelines.source.late_records import behind
from moldau.pipelines.streams.errors import TopologyException, failure
from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.tasks.table_joins import Joiner, JoinSerdes
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import is_native
from moldau.pipelines.streams.topology.stateful import GlobalTableJoin, StreamStreamJoin

_HOW = {"inner": "inner", "left": "left_outer", "outer": "full_outer"}
#: The rows of a join before the joiner combines the two values.
_PAIR = (
    "key binary, left_value binary, right_value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, topic string, partition int, offset bigint, seq int"
)


def stream_stream_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, StreamStreamJoin):
        raise TypeError(f"{node.name} is not a stream-stream join")
    windows = operation.windows
    delay_ms = max(windows.before_ms, windows.after_ms, 0) + windows.grace_ms
    inner = operation.kind == "inner"
    left, right = (
        _side(port.frame, name, delay_ms, inner) for port, name in zip(ports, ("left", "right"), strict=True)
    )
    condition = (
        (F.col("left_at") == F.col("right_at"))
        & (F.col("right_timestamp") >= F.col("left_timestamp") - _interval(windows.before_ms))
        & (F.col("right_timestamp") <= F.col("left_timestamp") + _interval(windows.after_ms))
    )
    pairs = left.join(right, condition, _HOW[operation.kind]).select(*_pair_columns())
    joiner = joiner_with_key(operation.joiner, with_key=operation.with_key, name=node.name)
    values = join_values(pairs, joiner, join_serdes(ports, context), node.name)
    return Result(values, "append", late=partial(_late, inner))


def join_serdes(ports: Sequence[Port], context: OperatorContext) -> JoinSerdes:
    left, right = ports
    return JoinSerdes(left.key_serde, left.value_serde, right.value_serde, context.value_serde)


def joiner_with_key(joiner: object, *, with_key: bool, name: str) -> Joiner:
    """Return the user's joiner as a function of key and two values."""
    if is_native(joiner) or not callable(joiner):
        raise TopologyException(f"{name}: the joiner must be a function of two values, not {joiner!r}")
    return joiner if with_key else _WithoutKey(joiner)


@dataclass(frozen=True, slots=True)
class _WithoutKey:
    joiner: Joiner

    def __call__(self, key: object, left: object, right: object) -> object:
        function: object = self.joiner
        return function(left, right)  # type: ignore[operator]


def join_values(pairs: DataFrame, joiner: Joiner, serdes: JoinSerdes, name: str) -> DataFrame:
    """Apply the joiner to rows with two values."""
    inputs = ("key", "left_value", "right_value", "topic", "partition", "offset")

    def value(
        key: bytes | None,
        left: bytes | None,
        right: bytes | None,
        topic: str | None,
        partition: int,
        offset: int,
    ) -> bytes | None:
        try:
            return serdes.joined(joiner, topic or "", key, left, right)
        except Exception as error:
            raise failure(name, f"{topic}-{partition}@{offset}", error) from error

    def joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = list(map(value, *(batch.column(each).to_pylist() for each in inputs)))
            kept = [batch.column(each) for each in COLUMNS if each not in ("key", "value")]
            columns = [batch.column("key"), pa.array(values, pa.binary()), *kept]
            yield pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))

    return without_null_headers(pairs).mapInArrow(joined, pairs_schema())


def pairs_schema() -> str:
    return _PAIR.replace("left_value binary, right_value binary", "value binary")


def _joining(frame: DataFrame, inner: bool) -> DataFrame:
    """Drop records that join nothing: those without a value and, in an inner join, those without a key."""
    there = frame.where(F.col("value").isNotNull())
    return there.where(F.col("key").isNotNull()) if inner else there


def _late(inner: bool, frame: DataFrame, watermark_ms: int) -> DataFrame:
    return _joining(frame, inner).where(behind(F.col("timestamp"), watermark_ms))


def _side(frame: DataFrame, name: str, delay_ms: int, inner: bool) -> DataFrame:
    """Prefix the columns of one side, and add `at`, the key to compare. In outer joins it differs on the two
    sides for records without a key, which join nothing in Kafka Streams. The names are part of the state's
    schema."""
    there = _joining(frame, inner).withWatermark("timestamp", f"{delay_ms} milliseconds")
    if inner:
        there = there.withColumn("at", F.col("key"))
    else:
        prefixed = F.concat(F.lit(b"k"), F.col("key"))
        there = there.withColumn("at", F.coalesce(prefixed, F.lit(name.encode())))
    return there.select(*[F.col(column).alias(f"{name}_{column}") for column in (*COLUMNS, "at")])


def _interval(milliseconds: int) -> Column:
    return F.expr(f"INTERVAL '{milliseconds / 1000:.3f}' SECOND")


def _pair_columns() -> list[Column]:
    later = F.col("right_timestamp") > F.col("left_timestamp")
    by_left = F.col("left_timestamp").isNotNull() & ~F.coalesce(later, F.lit(False))
    of_later = [
        F.when(by_left, F.col(f"left_{name}")).otherwise(F.col(f"right_{name}")).alias(name)
        for name in ("headers", "topic", "partition", "offset", "seq")
    ]
    return [
        F.coalesce("left_key", "right_key").alias("key"),
        F.col("left_value"),
        F.col("right_value"),
        F.greatest("left_timestamp", "right_timestamp").alias("timestamp"),
        *of_later,
    ]


def global_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, GlobalTableJoin):
        raise TypeError(f"{node.name} is not a join with a global table")
    stream, table = ports
    stream_rows = _with_lookup(node.name, stream, operation, table)
    latest = (
        table.frame.where(F.col("key").isNotNull())
        .groupBy(F.col("key").alias("lookup"))
        .agg(F.max_by("value", "offset").alias("right_value"))
        .where(F.col("right_value").isNotNull())
    )
    how = "left_outer" if operation.kind == "left" else "inner"
    pairs = stream_rows.join(F.broadcast(latest), "lookup", how).select(
        "key",
        F.col("value").alias("left_value"),
        "right_value",
        *[c for c in COLUMNS if c not in ("key", "value")],
    )
    joiner = joiner_with_key(operation.joiner, with_key=operation.with_key, name=node.name)
    return Result(join_values(pairs, joiner, join_serdes(ports, context), node.name), "append")


def _with_lookup(name: str, stream: Port, operation: GlobalTableJoin, table: Port) -> DataFrame:
    """Add the column `lookup`, the table's key that each row of the stream references. Rows without a value
    join nothing and are dropped."""
    selector, key_serde, value_serde = operation.key_selector, stream.key_serde, stream.value_serde
    table_keys = table.key_serde
    inputs = ("key", "value", "topic", "partition", "offset")

    def lookup(
        key: bytes | None, value: bytes | None, topic: str | None, partition: int, offset: int
    ) -> bytes | None:
        try:
            given = key_serde.deserialize(topic or "", key), value_serde.deserialize(topic or "", value)
            return table_keys.serialize("", selector(*given))
        except Exception as error:
            raise failure(name, f"{topic}-{partition}@{offset}", error) from error

    def lookups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = list(map(lookup, *(batch.column(each).to_pylist() for each in inputs)))
            yield batch.append_column("lookup", pa.array(keys, pa.binary()))

    there = stream.frame.where(F.col("value").isNotNull()).select(*COLUMNS)
    return without_null_headers(there).mapInArrow(lookups, f"{pairs_schema()}, lookup binary")
