"""Whether a task received all of its rows is decided by the marker that Spark sends after them."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from moldau.pipelines.sink.errors import RowsMissing, SinkError
from moldau.pipelines.sink.task_context import all_rows

ROWS = pa.RecordBatch.from_pydict({"value": ["a", "b"]})


def invoke_udf(sent: bytes) -> list[int]:
    """Run like Spark's worker: the rows are an Arrow stream at the beginning of the input."""
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


def test_complete_rows_are_accepted() -> None:
    assert invoke_udf(stream(ROWS, ROWS.slice(0, 0), ROWS, ended=True) + b"\xff\xff\xff\xfc") == [2, 2]


@pytest.mark.parametrize("sent", [stream(ROWS, ended=False), stream(ROWS, ended=True)])
def test_truncated_rows_are_an_error(sent: bytes) -> None:
    with pytest.raises(RowsMissing, match="Nothing was written"):
        invoke_udf(sent)


def test_unknown_worker_of_spark_is_an_error() -> None:
    with pytest.raises(SinkError, match="delivery=at-least-once"):
        list(all_rows(iter([ROWS])))
