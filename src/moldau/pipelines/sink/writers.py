"""The writers that Spark calls: one for batches, one for streams.

They are created on the driver, where options and columns are checked, and pickled for the tasks. Each task
commits its records itself; when Spark commits a batch, its records are already in the topics.
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
    """The result of a task."""

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
