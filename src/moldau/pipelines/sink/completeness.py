"""Whether a task got all of its rows.

When a query is stopped, or something in front of the sink fails, Spark closes the way on which rows come to
Python. For Arrow that is the end of the rows like any other, and what came so far would be committed as if it
were everything. The difference is a word of Spark's own that follows the last row. It is read by Spark's
worker when the task is done; until then it waits in the worker's input, where it can be seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pyarrow as pa

from moldau.pipelines.sink.errors import RowsMissing, SinkError

#: The function of Spark's worker that runs a task, and its input.
_RUNS_TASK, _INPUT = "invoke_udf", "input_data_stream"


def all_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches that have rows; `RowsMissing` in the place of their end if more should have come."""
    for batch in batches:
        if batch.num_rows:
            yield batch
    if not _input().peek(1):
        raise RowsMissing(
            "The query was stopped, or something in front of the sink failed, before the last row of the "
            "task came. Nothing was written."
        )


def _input() -> Any:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == _RUNS_TASK and _INPUT in frame.f_locals:
            return frame.f_locals[_INPUT]
        frame = frame.f_back
    raise SinkError(
        "This version of Spark does not let the sink see whether a task got all of its rows. Use one that is "
        "supported, or delivery=at-least-once."
    )
