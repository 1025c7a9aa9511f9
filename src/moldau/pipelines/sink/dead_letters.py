"""Records that could not be processed, as rows for a dead-letter topic.

Key, value, timestamp and headers are those of the record; the headers of Kafka Connect's dead letter queue
(KIP-298) are added, so that tools for such queues can read ours. Dead letters are part of the same write as
the other rows: with exactly-once delivery a record is in one of the two topics, once.

An error is a struct of `stage` (Connect's KEY_CONVERTER, VALUE_CONVERTER, TRANSFORMATION), `place` (the check
or format that failed) and `message`; it is null for records without an error.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PREFIX = "__connect.errors."
#: The exception that Connect raises for data it cannot convert.
_EXCEPTION = "org.apache.kafka.connect.errors.DataException"
ERROR_TYPE = "struct<stage: string, place: string, message: string>"
_HEADERS = "array<struct<key: string, value: binary>>"


def error(stage: str, place: str, message: Column) -> Column:
    """Return the error of a record."""
    return F.struct(F.lit(stage).alias("stage"), F.lit(place).alias("place"), message.alias("message"))


def dead_letters(frame: DataFrame, *, record: str, error: str, pipeline: str, topic: str) -> DataFrame:
    """Return the rows that have an error as records for the dead-letter topic.

    `record` is a struct column with key, value, topic, partition, offset, timestamp and optionally headers.
    """
    struct, failure = F.col(record), F.col(error)
    has_headers = "headers" in frame.schema[record].dataType.fieldNames()  # type: ignore[attr-defined]
    own = F.coalesce(struct["headers"], F.lit(None).cast(_HEADERS)) if has_headers else None
    added = F.array(
        _header("topic", struct["topic"]),
        _header("partition", struct["partition"]),
        _header("offset", struct["offset"]),
        _header("connector.name", F.lit(pipeline)),
        _header("stage", failure["stage"]),
        _header("class.name", failure["place"]),
        _header("exception.class.name", F.lit(_EXCEPTION)),
        _header("exception.message", failure["message"]),
    ).cast(_HEADERS)
    headers = added if own is None else F.concat(F.coalesce(own, F.array().cast(_HEADERS)), added)
    return frame.filter(failure.isNotNull()).select(
        struct["key"].alias("key"),
        struct["value"].alias("value"),
        headers.alias("headers"),
        struct["timestamp"].alias("timestamp"),
        F.lit(topic).alias("topic"),
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value"))
