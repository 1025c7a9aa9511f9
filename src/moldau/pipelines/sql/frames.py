"""Sources as views for Spark SQL, and results as records of topics.

A view has the columns of its source, ROWTIME, ROWPARTITION, ROWOFFSET, and beside them `__time` (the time of
the record as Spark's type), `__appended` (the record's own timestamp) and, of tables, `__deleted`. Records
that are not of their format are not in the view; their number is observed under `decoding`, and they go to a
dead-letter topic where the source names one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from moldau.pipelines.formats import Format, format_named
from moldau.pipelines.queries import read_topic, stream_topic
from moldau.pipelines.sql.catalog import Source
from moldau.pipelines.sql.plan import DELETED, KEEP, RESULT_TIME, WINDOW_END, WINDOW_START, Input, Plan
from moldau.pipelines.sql.scope import APPENDED, TIME
from moldau.pipelines.sql.statements import ColumnDefinition

#: The name under which records that could not be read are counted.
DECODING = "decoding"
_BYTES_OF_A_BOUND = 8


def key_schema(source: Source) -> StructType:
    return _schema(source.key_columns)


def value_schema(source: Source) -> StructType:
    return _schema(source.value_columns)


def _schema(columns: tuple[ColumnDefinition, ...]) -> StructType:
    ddl = ", ".join(f"`{one.name}` {one.type.ddl()}" for one in columns)
    schema = StructType.fromDDL(ddl) if ddl else StructType()
    if not isinstance(schema, StructType):
        raise TypeError(ddl)
    return schema


def key_format(source: Source) -> Format:
    # A single column of a JSON key is the whole text, as in ksqlDB.
    wrap = str(len(source.key_columns) > 1).lower()
    return format_named(source.key_format, {"wrap_single_value": wrap})


def value_format(source: Source) -> Format:
    properties = source.properties
    options = {
        "delimiter": properties.get("value_delimiter", ","),
        "wrap_single_value": properties.get("wrap_single_value", "true"),
        **{name: properties[name] for name in ("avro_schema", "avro_schema_file") if name in properties},
    }
    return format_named(source.value_format, options)


class Frames:
    """Reads the topics of sources in one session."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        options: Mapping[str, str],
        lock: threading.Lock | None = None,
    ) -> None:
        self.spark = spark
        self._bootstrap_servers = bootstrap_servers
        #: Settings of the client beside the address, as Spark's connector names them: `kafka.…`.
        self.client_options = {name: value for name, value in options.items() if name.startswith("kafka.")}
        self._options = dict(options)
        # Views have the same names in every plan: one plan at a time.
        self._lock = lock or threading.Lock()

    def limited(self, records_at_once: int) -> Frames:
        """The same, with so many records in a batch of a stream at most."""
        options = {**self._options, "maxOffsetsPerTrigger": str(records_at_once)}
        return Frames(self.spark, self._bootstrap_servers, options, self._lock)

    def records(self, source: Source, *, stream: bool, starting: str = "earliest") -> DataFrame:
        options = {**self._options, "startingOffsets": starting, "includeHeaders": "true"}
        if not any(column.role == "HEADERS" for column in source.columns):
            del options["includeHeaders"]
        read = stream_topic if stream else read_topic
        return read(self.spark, self._bootstrap_servers, source.topic, options)

    def changes(self, plan: Plan) -> DataFrame:
        """All records of the topics that a plan reads: when there are some, something has changed."""
        topics = sorted({given.source.topic for given in plan.inputs})
        return stream_topic(self.spark, self._bootstrap_servers, topics, self._options)

    def view(self, given: Input, starting: str = "earliest") -> None:
        """Make the view of an input of a plan."""
        stream = given.reading == "stream"
        source = given.source
        # Of a table everything counts, also what was written before the query began.
        records = self.records(source, stream=stream, starting="earliest" if source.is_table else starting)
        if source.is_table and not stream:
            records = latest(records)
        frame = rows(records, source, given.view, keep_deleted=stream)
        if given.watermark_ms is not None:
            frame = frame.withWatermark(TIME, f"{given.watermark_ms} milliseconds")
        frame.createOrReplaceTempView(given.view)

    def result(self, plan: Plan, starting: str = "earliest") -> DataFrame:
        with self._lock:
            for given in plan.inputs:
                self.view(given, starting)
            return self.spark.sql(plan.sql)


def latest(records: DataFrame) -> DataFrame:
    """The last record of each key: what a table is."""
    columns = [F.max_by(F.struct(*records.columns), "offset").alias("last")]
    keyed = records.where("key IS NOT NULL").groupBy(F.col("key").alias("__key")).agg(*columns)
    return keyed.select("last.*").where("value IS NOT NULL")


def decoded(records: DataFrame, source: Source) -> DataFrame:
    """Records with the columns `__k` and `__v` (structs) and `__error` added."""
    key = F.col("key")
    if source.window is not None:
        bounds = _BYTES_OF_A_BOUND * (2 if source.window.kind == "SESSION" else 1)
        key = F.substring(key, F.lit(1), F.length(key) - F.lit(bounds))
    value = value_format(source).decode(F.col("value"), value_schema(source))
    if not source.key_columns:
        return records.select("*", value.struct.alias("__v"), value.error.alias("__error"))
    decoded_key = key_format(source).decode(key, key_schema(source))
    error = F.concat(
        F.when(decoded_key.error.isNotNull(), "key: ").otherwise("value: "),
        F.coalesce(decoded_key.error, value.error),
    )
    return records.select(
        "*", decoded_key.struct.alias("__k"), value.struct.alias("__v"), error.alias("__error")
    )


def rows(records: DataFrame, source: Source, view: str, *, keep_deleted: bool) -> DataFrame:
    """The rows of a source, with the columns of its view."""
    frame = decoded(records, source)
    frame = frame.observe(
        f"{DECODING}{view}",
        F.count_if(F.col("__error").isNotNull()).alias("failed"),
        F.max("__error").alias("reason"),
    )
    frame = frame.where("__error IS NULL")
    if not (source.is_table and keep_deleted):
        frame = frame.where("value IS NOT NULL")
    if source.is_table:
        frame = frame.where("key IS NOT NULL")
    return frame.select(*_view_columns(source))


def _view_columns(source: Source) -> list[Column]:
    columns = [_column(column).alias(column.name) for column in source.columns]
    time = _time(source)
    columns += [
        F.unix_millis(time).alias("ROWTIME"),
        F.col("partition").alias("ROWPARTITION"),
        F.col("offset").alias("ROWOFFSET"),
        time.alias(TIME),
        F.col("timestamp").alias(APPENDED),
    ]
    if source.window is not None:
        columns += _bounds(source)
    if source.is_table:
        columns.append(F.col("value").isNull().alias(DELETED))
    return columns


def _column(column: ColumnDefinition) -> Column:
    if column.role == "HEADERS":
        if column.header is None:
            return F.col("headers")
        found = F.filter(F.col("headers"), lambda one: one["key"] == F.lit(column.header))
        return F.try_element_at(found, F.lit(-1))["value"]
    return F.col(f"__{column.role[0].lower()}")[column.name]


def _time(source: Source) -> Column:
    """The time of a record: its own, or that of a column if the source says so."""
    name = source.properties.get("timestamp")
    if name is None:
        return F.col("timestamp")
    column = next(one for one in source.columns if one.name.upper() == name.upper())
    value = _column(column)
    if (pattern := source.properties.get("timestamp_format")) is not None:
        value = F.try_to_timestamp(value, F.lit(pattern))
    elif column.type.kind == "BIGINT":
        value = F.timestamp_millis(value)
    elif column.type.kind == "VARCHAR":
        value = F.try_to_timestamp(value)
    return F.coalesce(value, F.col("timestamp"))


def _bounds(source: Source) -> list[Column]:
    """WINDOWSTART and WINDOWEND from behind the key: Kafka's windowed keys."""
    window = source.window
    if window is None:
        return []

    def number(from_end: int) -> Column:
        at = F.length("key") - F.lit(from_end - 1)
        return F.conv(F.hex(F.substring(F.col("key"), at, F.lit(_BYTES_OF_A_BOUND))), 16, -10).cast("bigint")

    start = number(_BYTES_OF_A_BOUND)
    end = number(2 * _BYTES_OF_A_BOUND) if window.kind == "SESSION" else start + F.lit(window.size_ms)
    return [start.alias("WINDOWSTART"), end.alias("WINDOWEND")]


def as_records(result: DataFrame, source: Source, names: Mapping[str, str]) -> DataFrame:
    """A result as records of a source's topic. `names`: the column of the source -> that of the result."""
    value = F.struct(
        *(F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.value_columns)
    )
    if KEEP in result.columns:
        value = F.when(F.col(KEEP), value)
    columns = [value_format(source).encode(value, value_schema(source)).alias("value")]
    columns.append(_key(source, names).alias("key"))
    if RESULT_TIME in result.columns:
        columns.append(F.col(RESULT_TIME).alias("timestamp"))
    return result.select(*columns)


def _key(source: Source, names: Mapping[str, str]) -> Column:
    if not source.key_columns:
        return F.lit(None).cast("binary")
    parts = [F.col(f"`{names[one.name]}`").cast(one.type.ddl()).alias(one.name) for one in source.key_columns]
    key = key_format(source).encode(F.struct(*parts), key_schema(source))
    if source.window is None:
        return key
    bounds = [WINDOW_END, WINDOW_START] if source.window.kind == "SESSION" else [WINDOW_START]
    written = [F.unhex(F.lpad(F.hex(F.col(bound)), 16, "0")) for bound in bounds]
    return F.concat(key, *written)


def dead_letters(records: DataFrame, source: Source, topic: str) -> DataFrame:
    """The records of a source that are not of its format, with why in their headers."""
    headers = F.array(
        *(
            F.struct(
                F.lit(f"__connect.errors.{name}").alias("key"),
                value.cast("string").cast("binary").alias("value"),
            )
            for name, value in (
                ("topic", F.col("topic")),
                ("partition", F.col("partition")),
                ("offset", F.col("offset")),
                ("exception.message", F.col("__error")),
            )
        )
    )
    failed = decoded(records, source).where("__error IS NOT NULL")
    return failed.select("value", "key", "timestamp", headers.alias("headers"), F.lit(topic).alias("topic"))
