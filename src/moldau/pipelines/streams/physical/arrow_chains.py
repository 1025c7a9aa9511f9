"""A chain as one Python function over Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.queries import without_null_headers
from moldau.pipelines.streams.chains.program import OutputRow, Program
from moldau.pipelines.streams.chains.runner import Runner

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW = pa.schema(
    [
        ("exit", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("ts", pa.int64()),
        ("headers", pa.list_(_HEADER)),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("seq", pa.int32()),
        ("target", pa.string()),
        ("target_partition", pa.int32()),
    ]
)
_DDL = (
    "exit int, key binary, value binary, ts long, headers array<struct<key: string, value: binary>>, "
    "topic string, partition int, offset long, seq int, target string, target_partition int"
)
#: The columns of the rows that a chain emits.
OUTPUT_COLUMNS = (
    "exit",
    "key",
    "value",
    "timestamp",
    "headers",
    "topic",
    "partition",
    "offset",
    "seq",
    "target",
    "target_partition",
)


def through_python(frame: DataFrame, program: Program) -> DataFrame:
    nothing = F.lit(None).cast("string")
    given = frame.select(
        "key",
        "value",
        F.unix_millis("timestamp").alias("ts"),
        "headers",
        "topic",
        "partition",
        "offset",
        *(F.col(name) if name in frame.columns else nothing.alias(name) for name in ("target", "child")),
    )
    rows = without_null_headers(given).mapInArrow(arrow_function(program), _DDL)
    return rows.select(
        *(
            F.timestamp_millis("ts").alias("timestamp") if name == "timestamp" else F.col(name)
            for name in OUTPUT_COLUMNS
        )
    )


def arrow_function(
    program: Program,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that Spark's workers call."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runner = Runner(program)
        for batch in batches:
            rows = runner.run(_rows(batch))
            if rows:
                yield _batch(rows)

    return run


def _rows(batch: pa.RecordBatch) -> Iterator[Sequence[Any]]:
    columns = [column.to_pylist() for column in batch.columns]
    columns[3] = [_pairs(headers) for headers in columns[3]]
    return zip(*columns, strict=True)


def _pairs(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    return [(each["key"], each["value"]) for each in headers] if headers else []


def _batch(rows: Sequence[OutputRow]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns[4] = [
        [{"key": key, "value": value} for key, value in each] if each else None for each in columns[4]
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
