"""Joins with tables: stream with table, table with table, stream with a global table.

The first two are tasks. A global table is read anew for every batch, as it is then, and given to every task
of Spark's, so the stream's records keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.streams.errors import failure
from moldau.pipelines.streams.physical.ports import COLUMNS, OperatorContext, Port, Result
from moldau.pipelines.streams.physical.stream_joins import join_values, keyed, pairs_schema
from moldau.pipelines.streams.physical.tasks import run_tasks
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes, Lookup, TableJoin
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stateful import GlobalTableJoin, StreamTableJoin, TableTableJoin


def stream_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, StreamTableJoin):
        raise TypeError(f"{node.name} is not a join of a stream with a table")
    joiner = keyed(operation.joiner, with_key=operation.with_key, name=node.name)
    lookup = Lookup(joiner, _serdes(ports, context), left=operation.kind == "left")
    return Result(
        run_tasks([port.frame for port in ports], lookup, name=node.name).select(*COLUMNS), "append"
    )


def table_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, TableTableJoin):
        raise TypeError(f"{node.name} is not a join of tables")
    joiner = keyed(operation.joiner, with_key=False, name=node.name)
    join = TableJoin(operation.kind, joiner, _serdes(ports, context))
    return Result(run_tasks([port.frame for port in ports], join, name=node.name).select(*COLUMNS), "append")


def global_table_join(node: Node, ports: Sequence[Port], context: OperatorContext) -> Result:
    operation = node.operation
    if not isinstance(operation, GlobalTableJoin):
        raise TypeError(f"{node.name} is not a join with a global table")
    stream, table = ports
    asking = _with_lookup(node.name, stream, operation, table)
    latest = (
        table.frame.where(F.col("key").isNotNull())
        .groupBy(F.col("key").alias("lookup"))
        .agg(F.max_by("value", "offset").alias("right_value"))
        .where(F.col("right_value").isNotNull())
    )
    how = "left_outer" if operation.kind == "left" else "inner"
    pairs = asking.join(F.broadcast(latest), "lookup", how).select(
        "key",
        F.col("value").alias("left_value"),
        "right_value",
        *[c for c in COLUMNS if c not in ("key", "value")],
    )
    joiner = keyed(operation.joiner, with_key=operation.with_key, name=node.name)
    return Result(join_values(pairs, joiner, _serdes(ports, context), node.name), "append")


def _serdes(ports: Sequence[Port], context: OperatorContext) -> JoinSerdes:
    left, right = ports
    return JoinSerdes(left.key_serde, left.value_serde, right.value_serde, context.value_serde)


def _with_lookup(name: str, stream: Port, operation: GlobalTableJoin, table: Port) -> DataFrame:
    """The stream's rows with the table's key that each asks for. Those without a value join nothing."""
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
            asked = list(map(lookup, *(batch.column(each).to_pylist() for each in inputs)))
            yield batch.append_column("lookup", pa.array(asked, pa.binary()))

    there = stream.frame.where(F.col("value").isNotNull()).select(*COLUMNS)
    return there.mapInArrow(lookups, f"{pairs_schema()}, lookup binary")
