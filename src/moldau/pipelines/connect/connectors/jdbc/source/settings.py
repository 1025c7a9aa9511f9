"""The settings of the JDBC source, with Confluent's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Range,
    ValidString,
    Width,
)
from moldau.pipelines.connect.connectors.jdbc.settings import check_connection, define_connection

MODE: Final = "mode"
BULK, INCREMENTING, TIMESTAMP = "bulk", "incrementing", "timestamp"
TIMESTAMP_INCREMENTING: Final = "timestamp+incrementing"
INCREMENTING_COLUMN: Final = "incrementing.column.name"
TIMESTAMP_COLUMN: Final = "timestamp.column.name"
TIMESTAMP_INITIAL: Final = "timestamp.initial"
TIMESTAMP_DELAY: Final = "timestamp.delay.interval.ms"
TIMESTAMP_GRANULARITY: Final = "timestamp.granularity"
TRANSACTION_WAIT: Final = "open.transaction.wait.ms"
VALIDATE_NON_NULL: Final = "validate.non.null"
QUERY: Final = "query"
QUERY_MASKED: Final = "query.masked"
QUERY_SUFFIX: Final = "query.suffix"
QUERY_RETRIES: Final = "query.retry.attempts"
NUMERIC_MAPPING: Final = "numeric.mapping"
NUMERIC_PRECISION_MAPPING: Final = "numeric.precision.mapping"
WHITELIST, BLACKLIST = "table.whitelist", "table.blacklist"
INCLUDE, EXCLUDE = "table.include.list", "table.exclude.list"
CATALOG_PATTERN, SCHEMA_PATTERN = "catalog.pattern", "schema.pattern"
TABLE_TYPES: Final = "table.types"
TABLE_POLL_INTERVAL: Final = "table.poll.interval.ms"
TOPIC_PREFIX: Final = "topic.prefix"
POLL_INTERVAL: Final = "poll.interval.ms"
BATCH_MAX_ROWS: Final = "batch.max.rows"
#: The tables of one task, set by the connector.
TABLES: Final = "tables"

_MODES: Final = (BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING)
NUMERIC_MAPPINGS: Final = ("none", "precision_only", "best_fit", "best_fit_eager_double")
GRANULARITIES: Final = (
    *("connect_logical", "micros_long", "micros_string", "micros_iso_datetime_string"),
    *("nanos_long", "nanos_string", "nanos_iso_datetime_string"),
)


class _OptionalString(ValidString):
    """One of some strings, or not set."""

    def __call__(self, name: str, value: Any) -> None:
        if value is not None:
            ValidString.__call__(self, name, value)


def _in(group: str) -> Any:
    """Return a function that numbers the settings of a group."""
    order = iter(range(1, 100))

    def shown(name: str, width: Width = Width.MEDIUM) -> dict[str, Any]:
        return {"group": group, "order_in_group": next(order), "width": width, "display_name": name}

    return shown


def _define_mode(definition: ConfigDef) -> None:
    shown, high, medium, low = _in("Mode"), Importance.HIGH, Importance.MEDIUM, Importance.LOW
    definition.define(
        MODE,
        ConfigType.STRING,
        NO_DEFAULT,
        high,
        "How to find rows at each poll: bulk copies all rows; incrementing finds new rows by a column that "
        "only grows; timestamp finds new and changed rows by one or more timestamp columns; "
        "timestamp+incrementing uses both, so that every row has an offset of its own.",
        validator=ValidString(_MODES),
        dependents=(INCREMENTING_COLUMN, TIMESTAMP_COLUMN, VALIDATE_NON_NULL),
        **shown("Table Loading Mode"),
    ).define(
        INCREMENTING_COLUMN,
        ConfigType.STRING,
        "",
        medium,
        "Strictly incrementing column. Empty: the only column of the table's primary key. Must not be null.",
        **shown("Incrementing Column Name"),
    ).define(
        TIMESTAMP_COLUMN,
        ConfigType.LIST,
        "",
        medium,
        "Timestamp columns; the first that is not null is the timestamp of a row (COALESCE).",
        **shown("Timestamp Column Name"),
    ).define(
        TIMESTAMP_INITIAL,
        ConfigType.LONG,
        None,
        low,
        "Milliseconds since the epoch after which rows are read first; -1: from now on. Not set: all rows.",
        **shown("Unix time value of initial timestamp"),
    ).define(
        VALIDATE_NON_NULL,
        ConfigType.BOOLEAN,
        True,
        low,
        "Require NOT NULL for the incrementing column and for at least one timestamp column.",
        **shown("Validate Non Null"),
    )


def _define_query(definition: ConfigDef) -> None:
    shown, medium, low = _in("Query"), Importance.MEDIUM, Importance.LOW
    definition.define(
        QUERY,
        ConfigType.STRING,
        "",
        medium,
        "Query whose rows are read instead of tables. In other modes than bulk, the criteria are added "
        "around it.",
        **shown("Query", Width.LONG),
    ).define(
        QUERY_MASKED,
        ConfigType.PASSWORD,
        None,
        medium,
        "The same as query, but hidden like a password.",
        **shown("Query (Masked)", Width.LONG),
    ).define(
        QUERY_SUFFIX,
        ConfigType.STRING,
        "",
        low,
        "Text to append to every query, for example LIMIT 1000.",
        **shown("Query suffix"),
    ).define(
        QUERY_RETRIES,
        ConfigType.INT,
        -1,
        low,
        "How often to repeat a query that failed because of the connection or a conflict; -1: without limit.",
        validator=Range(-1),
        **shown("Query Retry Attempts"),
    )


def _define_data(definition: ConfigDef) -> None:
    shown, low = _in("Data Mapping"), Importance.LOW
    definition.define(
        NUMERIC_PRECISION_MAPPING,
        ConfigType.BOOLEAN,
        False,
        low,
        "Deprecated: the same as numeric.mapping=precision_only.",
        **shown("Map Numeric Values By Precision (deprecated)"),
    ).define(
        NUMERIC_MAPPING,
        ConfigType.STRING,
        None,
        low,
        "How to map NUMERIC columns: none (Decimal); precision_only (integers by precision, if the scale is "
        "0); best_fit (integers, or FLOAT64 for numbers with a scale, up to 18 digits); "
        "best_fit_eager_double (FLOAT64 for all numbers with a scale).",
        validator=_OptionalString(NUMERIC_MAPPINGS),
        **shown("Map Numeric Values, Integral or Decimal, By Precision and Scale"),
    ).define(
        TIMESTAMP_GRANULARITY,
        ConfigType.STRING,
        "connect_logical",
        low,
        "Form of timestamp columns: Connect's Timestamp (milliseconds), or microseconds or nanoseconds "
        "since the epoch as number, text or ISO 8601.",
        validator=ValidString(GRANULARITIES),
        **shown("Timestamp granularity for timestamp columns"),
    )


def _define_tables(definition: ConfigDef) -> None:
    shown, medium, low = _in("Tables"), Importance.MEDIUM, Importance.LOW
    lists = (
        (WHITELIST, "Tables to read, with or without their schema.", "Table Whitelist"),
        (BLACKLIST, "Tables not to read, with or without their schema.", "Table Blacklist"),
        (INCLUDE, "Regular expressions of fully-qualified tables to read.", "Tables Included (Regex)"),
        (
            EXCLUDE,
            f"Regular expressions of fully-qualified tables not to read, of those in {INCLUDE}.",
            "Tables Excluded (Regex)",
        ),
    )
    for name, documentation, display in lists:
        definition.define(name, ConfigType.LIST, "", medium, documentation, **shown(display, Width.LONG))
    definition.define(
        CATALOG_PATTERN,
        ConfigType.STRING,
        None,
        medium,
        "Catalog of the tables (in MySQL: database), with % and _ as in LIKE.",
        **shown("Catalog pattern"),
    ).define(
        SCHEMA_PATTERN,
        ConfigType.STRING,
        None,
        medium,
        "Schema of the tables, with % and _ as in LIKE.",
        **shown("Schema pattern"),
    ).define(
        TABLE_TYPES,
        ConfigType.LIST,
        "TABLE",
        low,
        "Which kinds to read: TABLE, VIEW or both.",
        validator=ValidString(("TABLE", "VIEW")),
        **shown("Table Types"),
    ).define(
        TABLE_POLL_INTERVAL,
        ConfigType.LONG,
        60_000,
        low,
        "Milliseconds between looks for new or removed tables, which give the tasks a new configuration.",
        validator=Range(1),
        **shown("Metadata Change Monitoring Interval (ms)"),
    )


def _define_connector(definition: ConfigDef) -> None:
    shown, high, low = _in("Connector"), Importance.HIGH, Importance.LOW
    definition.define(
        TOPIC_PREFIX,
        ConfigType.STRING,
        NO_DEFAULT,
        high,
        "Text before the table's name in the name of its topic; for a query, the name of the topic.",
        **shown("Topic Prefix"),
    ).define(
        POLL_INTERVAL,
        ConfigType.INT,
        5000,
        high,
        "Milliseconds between two polls of a table.",
        validator=Range(0),
        **shown("Poll Interval (ms)", Width.SHORT),
    ).define(
        BATCH_MAX_ROWS,
        ConfigType.INT,
        1000,
        low,
        "Maximum number of rows to read at a time.",
        validator=Range(1),
        **shown("Max Rows Per Batch", Width.SHORT),
    ).define(
        TIMESTAMP_DELAY,
        ConfigType.LONG,
        0,
        high,
        "Milliseconds that a row's timestamp must lie in the past before the row is read. Needed for rows "
        "that commit out of order where the database does not tell its open transactions.",
        validator=Range(0),
        **shown("Delay Interval (ms)"),
    ).define(
        TRANSACTION_WAIT,
        ConfigType.LONG,
        10_000,
        low,
        "Rows are read once every transaction is finished that was open when they appeared, so that none is "
        "lost that commits out of order. This is how many milliseconds to wait for a transaction that has "
        "written nothing yet; one that has written is always waited for. -1: do not wait for any.",
        validator=Range(-1),
        **shown("Open Transaction Wait (ms)"),
    )


def source_config() -> ConfigDef:
    definition = define_connection(ConfigDef())
    for define in (_define_mode, _define_query, _define_data, _define_tables, _define_connector):
        define(definition)
    return definition


def check_source(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of combinations of settings."""
    check_connection(values)

    def given(name: str) -> bool:
        return bool(values[name].value)

    def refuse(name: str, message: str) -> None:
        values[name].errors.append(message)

    legacy = given(WHITELIST) or given(BLACKLIST)
    if given(WHITELIST) and given(BLACKLIST):
        refuse(BLACKLIST, f"{WHITELIST} and {BLACKLIST} are exclusive.")
    if (given(INCLUDE) or given(EXCLUDE)) and legacy:
        refuse(INCLUDE, f"{INCLUDE} and {EXCLUDE} cannot be used with {WHITELIST} or {BLACKLIST}.")
    if given(EXCLUDE) and not given(INCLUDE):
        refuse(EXCLUDE, f"{EXCLUDE} requires {INCLUDE}.")
    if given(QUERY) and given(QUERY_MASKED):
        refuse(QUERY, f"{QUERY} and {QUERY_MASKED} are exclusive.")
    if (given(QUERY) or given(QUERY_MASKED)) and (legacy or given(INCLUDE)):
        refuse(QUERY, "Do not specify table filtering configs with 'query'. Remove the lists of tables.")
    mode = values[MODE].value
    if mode in (TIMESTAMP, TIMESTAMP_INCREMENTING) and not given(TIMESTAMP_COLUMN):
        refuse(TIMESTAMP_COLUMN, f"Timestamp column configuration must be provided when mode is {mode}.")
    needs_id = mode in (INCREMENTING, TIMESTAMP_INCREMENTING) and not given(INCREMENTING_COLUMN)
    if needs_id and (given(QUERY) or given(QUERY_MASKED)):
        refuse(INCREMENTING_COLUMN, "A query needs the name of its incrementing column.")


def query_of(config: Mapping[str, Any]) -> str:
    """Return the query that is read; empty if tables are."""
    masked = config[QUERY_MASKED]
    return str(masked.value if isinstance(masked, Password) else config[QUERY]).strip().rstrip(";")
