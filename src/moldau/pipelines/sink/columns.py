"""The columns of rows that are written: names, types, and their conversion for the producer.

Names, types and error messages are those of Spark's Kafka connector. A column `timestamp` of type timestamp
is an addition: without it records get the time of writing. Other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from moldau.pipelines.sink.errors import InvalidRows

HEADERS_TYPE = "array<struct<key:string,value:binary>>"

_TYPES: dict[str, tuple[str, ...]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS_TYPE,),
    "partition": ("int",),
}
_TIMESTAMP = "timestamp"
_TEXT = ("key", "value")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to write. `topic` is the topic of all rows; None if each row names its topic."""

    names: tuple[str, ...]
    topic: str | None

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns for the producer."""
        arrays = [_bytes(rows.column(name)) if name in _TEXT else rows.column(name) for name in self.names]
        if self.topic is None and arrays[self.names.index("topic")].null_count:
            raise InvalidRows(
                "The Kafka message data sent to the producer contains a null topic. Use the `topic` option "
                "for setting a default topic."
            )
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))

    def first_topic(self, rows: pa.RecordBatch) -> str:
        return str(rows.column("topic")[0].as_py()) if self.topic is None else self.topic


def columns_of(schema: StructType, topic: str | None) -> Columns:
    """Check the columns of the rows; the option `topic` overrides the column."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if topic is None and "topic" not in types:
        raise InvalidRows(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting "
            "a topic."
        )
    if "value" not in types:
        raise InvalidRows("Required attribute 'value' not found")
    taken = [name for name in _TYPES if name in types and not (name == "topic" and topic is not None)]
    for name in taken:
        _check_type(name, types[name], _TYPES[name])
    if types.get(_TIMESTAMP) == _TIMESTAMP:
        taken.append(_TIMESTAMP)
    return Columns(tuple(taken), topic)


def _check_type(name: str, found: str, wanted: Sequence[str]) -> None:
    # Field names of headers are case-insensitive, as in Spark.
    if found.lower() not in wanted:
        raise InvalidRows(
            f"{name} attribute unsupported type {found}. {name} must be a(n) {' or '.join(wanted)}"
        )


def _bytes(array: pa.Array) -> pa.Array:
    """Convert strings to their UTF-8 bytes."""
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return array.cast(pa.large_binary()) if pa.types.is_large_string(array.type) else array
