"""The source of a pipeline as a data frame: decoded records of topics, or any format that Spark reads.

Decoded records have the columns of their schema, those of the key's schema, and `record`: a struct with the
original key, value, topic, partition, offset and timestamp. Without a format, records have the columns of
Spark's Kafka connector.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from moldau.pipelines.formats.registry.headers import is_framed, with_frame
from moldau.pipelines.formats.serialization import format_named
from moldau.pipelines.queries import source_format
from moldau.pipelines.runtime.checks import ERROR, RECORD, STOPPED
from moldau.pipelines.runtime.definition import BadDefinition, Definition, Source
from moldau.pipelines.sink.dead_letters import ERROR_TYPE, error

_KEY, _VALUE = "__key", "__value"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def source_frame(spark: SparkSession, definition: Definition, client: Mapping[str, str]) -> DataFrame:
    """Return the frame of the source; with the column `ERROR` if records are decoded.

    `client` are the defaults of its `kafka.*` options.
    """
    source = definition.source
    if not source.is_topic:
        return _any_format(spark, source)
    options = {"startingOffsets": "earliest", **client, **_subscription(source), **source.options}
    if definition.dead_letter is not None or _has_framed(source):
        options["includeHeaders"] = "true"
    raw = spark.readStream.format(source_format(spark)).options(**options).load()
    if source.format is None and source.key_format is None and not definition.dead_letter:
        return raw
    return _decoded(raw, source, fail=definition.dead_letter is None)


def _has_framed(source: Source) -> bool:
    return any(is_framed(kind, source.options) for kind in (source.format, source.key_format))


def _subscription(source: Source) -> dict[str, str]:
    if source.pattern is not None:
        return {"subscribePattern": source.pattern}
    return {"subscribe": ",".join(source.topics)}


def _any_format(spark: SparkSession, source: Source) -> DataFrame:
    reader = spark.readStream.format(source.format or "").options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load(source.path) if source.path else reader.load()


def _decoded(raw: DataFrame, source: Source, *, fail: bool) -> DataFrame:
    parts: list[Column] = []
    errors: list[Column] = []
    columns: list[str] = []
    for name, kind, schema, stage in (
        ("key", source.key_format, source.key_schema, "KEY_CONVERTER"),
        ("value", source.format, source.schema, "VALUE_CONVERTER"),
    ):
        if kind is None:
            continue
        topic = source.topics[0] if source.topics else None
        if schema is None:
            struct = _registered_schema(source, topic, key=name == "key")
        else:
            struct = parse_schema(schema)
        data = F.col(name)
        if is_framed(kind, source.options):
            data = with_frame(data, F.col("headers"), key=name == "key")
        decoded = format_named(kind, source.options, topic=topic, key=name == "key").decode(data, struct)
        parts.append(decoded.struct.alias(f"__{name}"))
        errors.append(
            F.when(decoded.error.isNotNull(), error(stage, f"format {kind}", decoded.error)).otherwise(
                F.lit(None).cast(ERROR_TYPE)
            )
        )
        columns.append(f"__{name}.*")
    kept = [name for name in (*_RECORD_COLUMNS, "headers") if name in raw.columns]
    wrong = F.coalesce(*errors) if errors else F.lit(None).cast(ERROR_TYPE)
    rows = raw.select(F.struct(*kept).alias(RECORD), *parts, wrong.alias(ERROR))
    if not errors:
        return rows.select(f"{RECORD}.*", RECORD, ERROR)
    return (_failing(rows) if fail else rows).select(*columns, RECORD, ERROR)


def _registered_schema(source: Source, topic: str | None, *, key: bool) -> StructType:
    """Return the columns of the latest schema in the registry."""
    from moldau.pipelines.formats.registry.columns import registered_columns
    from moldau.pipelines.formats.registry.options import registry_options

    registry = registry_options(source.options, topic, key=key)
    found = None if registry is None else registry.schema()
    if registry is None or found is None:
        raise BadDefinition(
            f"the source {topic or source.pattern} has no schema: the registry has no subject "
            f"{registry.subject if registry else ''}; write 'schema: id LONG, name STRING', for example"
        )
    return registered_columns(registry.client, found.schema, "key" if key else "value")


def _failing(rows: DataFrame) -> DataFrame:
    """Stop the query at a record that cannot be decoded: there is no dead-letter topic."""
    record = F.col(RECORD)
    message = F.concat(
        F.lit(f"{STOPPED} the record of "),
        *(record["topic"], F.lit("-"), record["partition"].cast("string")),
        *(
            F.lit(" at offset "),
            record["offset"].cast("string"),
            F.lit(" cannot be decoded: "),
            F.col(ERROR)["message"],
        ),
        F.lit(". Set 'dead_letter' to send such records to a topic"),
    )
    decoded = F.col(ERROR).isNull()
    return rows.filter(F.when(decoded, F.lit(True)).otherwise(F.raise_error(message).cast("boolean")))


def parse_schema(text: str) -> StructType:
    """Parse columns in SQL's DDL syntax."""
    from pyspark.errors import ParseException

    try:
        schema = StructType.fromDDL(text)
    except ParseException as wrong:
        raise BadDefinition(f"the schema '{text}' is invalid: {_first_line(wrong)}") from wrong
    if not isinstance(schema, StructType):
        raise BadDefinition(f"the schema '{text}' is not a list of columns, such as 'id LONG, name STRING'")
    return schema


def _first_line(wrong: Exception) -> str:
    return next((line for line in str(wrong).splitlines() if line.strip()), "")
