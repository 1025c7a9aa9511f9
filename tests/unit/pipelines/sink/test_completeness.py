"""Rows that end, and rows that break off: only what Spark sends behind them tells which."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from moldau.pipelines.sink.completeness import all_rows
from moldau.pipelines.sink.errors import RowsMissing, SinkError

ROWS = pa.RecordBatch.from_pydict({"value": ["a", "b"]})


def invoke_udf(sent: bytes) -> list[int]:
    """As Spark's worker: the rows are Arrow's stream at the beginning of what was sent."""
    input_data_stream = io.BufferedReader(io.BytesIO(sent))
    reader = pa.ipc.open_stream(input_data_stream)
    return [batch.num_rows for batch in all_rows(iter(reader))]


def stream(*batches: pa.RecordBatch, ended: bool) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
        whole = len(sink.getvalue())
    return sink.getvalue() if ended else sink.getvalue()[:whole]


def test_rows_that_end() -> None:
    assert invoke_udf(stream(ROWS, ROWS.slice(0, 0), ROWS, ended=True) + b"\xff\xff\xff\xfc") == [2, 2]


@pytest.mark.parametrize("sent", [stream(ROWS, ended=False), stream(ROWS, ended=True)])
def test_rows_that_break_off(sent: bytes) -> None:
    with pytest.raises(RowsMissing, match="Nothing was written"):
        invoke_udf(sent)


def test_a_worker_that_shows_no_input() -> None:
    with pytest.raises(SinkError, match="delivery=at-least-once"):
        list(all_rows(iter([ROWS])))
