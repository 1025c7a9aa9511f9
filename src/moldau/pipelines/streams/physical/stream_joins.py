"""Joins of two streams, by Spark's own operator.

Two records of one key are joined when their timestamps are within the windows, both ends included. Spark's
watermark is so far behind that it drops no record that Kafka Streams would still join: by the longer side of
the window and the grace. What has no partner (left and outer joins) comes out when the watermark, the slower
of the two sides', has passed the end of its window: a stream that stands still holds that back, where Kafka
Streams goes by the faster one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.source.late_records import behind
from moldau.pipelines.streams.errors import TopologyException, failure
from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.tasks.table_joins import Joiner, JoinSerdes
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import is_native
from moldau.pipelines.streams.topology.stateful import StreamStreamJoin

_HOW = {"inner": "inner", "left": "left_outer", "outer": "full_outer"}
#: What a join brings together before the user's function makes one value of two.
_PAIR = (
    "key binary, left_value binary, right_value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, topic string, partition int, offset bigint, seq int"
)


def stream_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, StreamStreamJoin):
        raise TypeError(f"{node.name} is not a join of streams")
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
    joiner = keyed(operation.joiner, with_key=operation.with_key, name=node.name)
    serdes = JoinSerdes(ports[0].key_serde, ports[0].value_serde, ports[1].value_serde, context.value_serde)
    return Result(join_values(pairs, joiner, serdes, node.name), "append", late=partial(_late, inner))


def keyed(joiner: object, *, with_key: bool, name: str) -> Joiner:
    """The user's function, as one of key and two values."""
    if is_native(joiner) or not callable(joiner):
        raise TopologyException(f"{name}: a join takes a function of two values, not {joiner!r}")
    return joiner if with_key else _WithoutKey(joiner)


@dataclass(frozen=True, slots=True)
class _WithoutKey:
    joiner: Joiner

    def __call__(self, key: object, left: object, right: object) -> object:
        function: object = self.joiner
        return function(left, right)  # type: ignore[operator]


def join_values(pairs: DataFrame, joiner: Joiner, serdes: JoinSerdes, name: str) -> DataFrame:
    """Rows with two values become rows with one."""
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

    return pairs.mapInArrow(joined, pairs_schema())


def pairs_schema() -> str:
    return _PAIR.replace("left_value binary, right_value binary", "value binary")


def _joining(frame: DataFrame, inner: bool) -> DataFrame:
    """Records without a value join nothing, and in an inner join those without a key."""
    there = frame.where(F.col("value").isNotNull())
    return there.where(F.col("key").isNotNull()) if inner else there


def _late(inner: bool, frame: DataFrame, watermark_ms: int) -> DataFrame:
    return _joining(frame, inner).where(behind(F.col("timestamp"), watermark_ms))


def _side(frame: DataFrame, name: str, delay_ms: int, inner: bool) -> DataFrame:
    """With what is compared as `at`: Spark's outer joins would bring records without keys together, which
    join nothing in Kafka Streams."""
    there = _joining(frame, inner).withWatermark("timestamp", f"{delay_ms} milliseconds")
    if inner:
        there = there.withColumn("at", F.col("key"))
    else:
        keyed_by = F.concat(F.lit(b"k"), F.col("key"))
        there = there.withColumn("at", F.coalesce(keyed_by, F.lit(name.encode())))
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
