"""The format `moldau`: the data source that Spark reads and writes topics with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.pipelines.options import InvalidOption
from moldau.pipelines.source.options import includes_headers, read_options

if TYPE_CHECKING:
    from moldau.pipelines.source.options import SourceOptions

_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(_COLUMNS)
SCHEMA_WITH_HEADERS = StructType([*_COLUMNS, StructField("headers", ArrayType(_HEADER))])


class MoldauDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType:
        return SCHEMA_WITH_HEADERS if includes_headers(self.options) else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.pipelines.source.batch_reader import BatchReader

        return BatchReader(self._read_options(schema, stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.pipelines.source.stream_reader import StreamReader

        return StreamReader(self._read_options(schema, stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.pipelines.sink.writers import batch_writer

        if overwrite:
            raise InvalidOption("A topic cannot be overwritten, only appended to: use mode('append').")
        return batch_writer(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.pipelines.sink.writers import stream_writer

        return stream_writer(self.options, schema)

    def _read_options(self, schema: StructType, *, stream: bool) -> SourceOptions:
        if schema.names != self.schema().names:
            raise InvalidOption(
                f"The columns of a topic are fixed ({', '.join(self.schema().names)}), so a schema cannot be "
                "set. Decode `value` instead, for example with from_json."
            )
        return read_options(self.options, stream=stream)
