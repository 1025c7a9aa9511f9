"""Records that could not be dealt with, as they go to a dead-letter topic.

Key, value, timestamp and headers are those of the record; headers with the names of Kafka Connect's
dead-letter queue say where it came from and what was wrong, so that tools for those queues understand ours.
They are rows of the same write as the good ones: with exactly once, a record is in one of the two places,
once.

An error is a struct of `stage` (Connect's names: KEY_CONVERTER, VALUE_CONVERTER, TRANSFORMATION), `place`
(what found it) and `message`; it is null for records without one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PREFIX = "__connect.errors."
#: The class that Connect raises for data it does not understand.
_EXCEPTION = "org.apache.kafka.connect.errors.DataException"
ERROR_TYPE = "struct<stage: string, place: string, message: string>"
_HEADERS = "array<struct<key: string, value: binary>>"


def error(stage: str, place: str, message: Column) -> Column:
    """What is wrong with a record."""
    return F.struct(F.lit(stage).alias("stage"), F.lit(place).alias("place"), message.alias("message"))


def dead_letters(frame: DataFrame, *, record: str, error: str, pipeline: str, topic: str) -> DataFrame:
    """The rows of a frame that have an error, as records for the dead-letter topic.

    `record` is a struct column with key, value, topic, partition, offset, timestamp and maybe headers.
    """
    struct, wrong = F.col(record), F.col(error)
    has_headers = "headers" in frame.schema[record].dataType.fieldNames()  # type: ignore[attr-defined]
    own = F.coalesce(struct["headers"], F.lit(None).cast(_HEADERS)) if has_headers else None
    told = F.array(
        _header("topic", struct["topic"]),
        _header("partition", struct["partition"]),
        _header("offset", struct["offset"]),
        _header("connector.name", F.lit(pipeline)),
        _header("stage", wrong["stage"]),
        _header("class.name", wrong["place"]),
        _header("exception.class.name", F.lit(_EXCEPTION)),
        _header("exception.message", wrong["message"]),
    ).cast(_HEADERS)
    headers = told if own is None else F.concat(F.coalesce(own, F.array().cast(_HEADERS)), told)
    return frame.filter(wrong.isNotNull()).select(
        struct["key"].alias("key"),
        struct["value"].alias("value"),
        headers.alias("headers"),
        struct["timestamp"].alias("timestamp"),
        F.lit(topic).alias("topic"),
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value"))
