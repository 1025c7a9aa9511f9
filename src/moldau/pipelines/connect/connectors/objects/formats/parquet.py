"""Parquet, by `pyarrow`. Columns follow the records of the file as those of a table do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from moldau.pipelines.connect.connectors.lake.rows.blocks import Blocks, Refused, RowRules
from moldau.pipelines.connect.connectors.lake.rows.evolution import Evolution
from moldau.pipelines.connect.connectors.objects.formats.catalog import Format
from moldau.pipelines.connect.connectors.objects.formats.schemas import schema_of
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

_ROWS: Final = 10_000


class _ParquetBuffer:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._codec: str = settings["parquet.codec"]
        self._blocks = Blocks(None, RowRules(Evolution(True)))
        self._added: list[SinkRecord] = []

    def add(self, record: SinkRecord) -> None:
        self._added.append(record)

    def settle(self) -> list[Refused]:
        added, self._added = self._added, []
        return self._blocks.add(added)

    def content(self) -> bytes:
        found = self._blocks.pending()
        if found is None:
            return b""
        sink = pa.BufferOutputStream()
        pq.write_table(found[1].rows, sink, compression=self._codec)
        return bytes(sink.getvalue())


def _read(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    try:
        content = pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise ConnectError(f"The file is not valid Parquet: {error}") from error
    schema = schema_of(pa.struct(list(content.schema_arrow)), optional=False)
    done = 0
    for batch in content.iter_batches(_ROWS):
        start = max(0, skip - done)
        done += batch.num_rows
        for row in batch.slice(start).to_pylist() if start < batch.num_rows else ():
            yield SchemaAndValue(schema, connect_value(schema, row))


def connect_value(schema: Schema, value: Any) -> Any:
    """Return a value of Arrow as Connect represents it."""
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return Struct.of(schema, [connect_value(field.schema, value[field.name]) for field in schema.fields])
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [connect_value(schema.value_schema, each) for each in value]
    if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is not None:
        return {
            connect_value(schema.key_schema, key): connect_value(schema.value_schema, each)
            for key, each in value
        }
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, time):
        return datetime.combine(date(1970, 1, 1), value, UTC)
    return value


FORMATS: Final = {"parquet": Format(".parquet", _ParquetBuffer, _read, has_schema=True)}
