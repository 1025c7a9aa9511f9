"""The writers that Spark is given: one for batches, one for streams.

They are made on the driver, where options and columns are checked, and are carried to the tasks. All that
matters happens there; when Spark says that a batch is complete, it is in the topics already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.pipelines.sink.columns import Columns, columns_of
from moldau.pipelines.sink.options import SinkOptions, read_sink_options


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports."""

    rows: int


class TopicWriter(DataSourceArrowWriter):
    """`df.write`."""

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from moldau.pipelines.sink.tasks import write_rows

        return Written(write_rows(self._options, self._columns, iterator, stream=False))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`."""

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from moldau.pipelines.sink.tasks import write_rows

        return Written(write_rows(self._options, self._columns, iterator, stream=True))


def batch_writer(options: Mapping[str, str], schema: StructType) -> TopicWriter:
    read = read_sink_options(options, stream=False)
    return TopicWriter(read, columns_of(schema, read.topic))


def stream_writer(options: Mapping[str, str], schema: StructType) -> TopicStreamWriter:
    read = read_sink_options(options, stream=True)
    return TopicStreamWriter(read, columns_of(schema, read.topic))
