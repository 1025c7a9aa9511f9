"""The settings of the PostgreSQL source, with Debezium's names and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Password,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.cdc.types import TypeModes
from moldau.pipelines.connect.data.errors import ConfigError

HOST, PORT = "database.hostname", "database.port"
USER, PASSWORD, DATABASE = "database.user", "database.password", "database.dbname"
TOPIC_PREFIX: Final = "topic.prefix"
TOPIC_DELIMITER: Final = "topic.delimiter"
PLUGIN: Final = "plugin.name"
SLOT: Final = "slot.name"
SLOT_DROP: Final = "slot.drop.on.stop"
PUBLICATION: Final = "publication.name"
AUTOCREATE: Final = "publication.autocreate.mode"
SNAPSHOT_MODE: Final = "snapshot.mode"
INITIAL, INITIAL_ONLY, ALWAYS, NO_DATA, WHEN_NEEDED = (
    *("initial", "initial_only", "always", "no_data", "when_needed"),
)
NEVER: Final = "never"
FETCH_SIZE: Final = "snapshot.fetch.size"
SCHEMA_INCLUDE, SCHEMA_EXCLUDE = "schema.include.list", "schema.exclude.list"
TABLE_INCLUDE, TABLE_EXCLUDE = "table.include.list", "table.exclude.list"
COLUMN_INCLUDE, COLUMN_EXCLUDE = "column.include.list", "column.exclude.list"
MAX_BATCH: Final = "max.batch.size"
POLL_INTERVAL: Final = "poll.interval.ms"
STATUS_INTERVAL: Final = "status.update.interval.ms"
TOMBSTONES: Final = "tombstones.on.delete"
SKIPPED: Final = "skipped.operations"
TIME_MODE: Final = "time.precision.mode"
DECIMAL_MODE: Final = "decimal.handling.mode"
BINARY_MODE: Final = "binary.handling.mode"
INTERVAL_MODE: Final = "interval.handling.mode"
UNKNOWN_TYPES: Final = "include.unknown.datatypes"
PLACEHOLDER: Final = "unavailable.value.placeholder"
HEARTBEAT: Final = "heartbeat.interval.ms"
HEARTBEAT_PREFIX: Final = "topic.heartbeat.prefix"
RETRY_WAIT: Final = "retriable.restart.connector.wait.ms"
MAX_RETRIES: Final = "errors.max.retries"
_SSL: Final = {
    "database.sslmode": "sslmode",
    "database.sslcert": "sslcert",
    "database.sslkey": "sslkey",
    "database.sslpassword": "sslpassword",
    "database.sslrootcert": "sslrootcert",
}
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SLOT_NAME: Final = re.compile(r"[a-z0-9_]{1,63}")
_TOPIC_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]+")
_LISTS: Final = (
    *(SCHEMA_INCLUDE, SCHEMA_EXCLUDE, TABLE_INCLUDE, TABLE_EXCLUDE, COLUMN_INCLUDE, COLUMN_EXCLUDE),
)


def _define_database(definition: ConfigDef) -> None:
    high, medium, text = Importance.HIGH, Importance.MEDIUM, ConfigType.STRING
    definition.define(HOST, text, NO_DEFAULT, high, "Host of the server.", validator=NonEmptyString())
    definition.define(PORT, ConfigType.INT, 5432, high, "Port of the server.", validator=Range(1, 65535))
    definition.define(
        USER, text, NO_DEFAULT, high, "User with the role REPLICATION, who may read the tables."
    )
    definition.define(PASSWORD, ConfigType.PASSWORD, None, high, "Password.")
    definition.define(DATABASE, text, NO_DEFAULT, high, "Database whose changes are captured.")
    definition.define(
        "database.sslmode",
        text,
        "prefer",
        medium,
        "TLS: disable, allow, prefer, require, verify-ca or verify-full.",
        validator=ValidString(_SSL_MODES),
    )
    definition.define("database.sslcert", text, None, medium, "File with the client's certificate.")
    definition.define("database.sslkey", text, None, medium, "File with the client's private key.")
    definition.define("database.sslpassword", ConfigType.PASSWORD, None, medium, "Password of the key.")
    definition.define("database.sslrootcert", text, None, medium, "File with certificates to verify with.")


def _define_stream(definition: ConfigDef) -> None:
    medium, low, text = Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        PLUGIN,
        text,
        "pgoutput",
        medium,
        "Output plugin of the server; pgoutput is part of PostgreSQL.",
        validator=ValidString(("pgoutput",)),
    )
    definition.define(
        SLOT,
        text,
        "debezium",
        medium,
        "Replication slot, created if it is missing. Every connector needs a slot of its own.",
    )
    definition.define(
        SLOT_DROP,
        ConfigType.BOOLEAN,
        False,
        medium,
        "Drop the slot when the task stops. Changes until the next start are lost then: for tests only.",
    )
    definition.define(PUBLICATION, text, "dbz_publication", low, "Publication of the tables.")
    definition.define(
        AUTOCREATE,
        text,
        "all_tables",
        medium,
        "What to do if the publication is missing: all_tables creates it for all tables (needs a superuser); "
        "filtered for the captured tables, and keeps it so; disabled fails.",
        validator=ValidString(("all_tables", "filtered", "disabled")),
    )


def _define_running(definition: ConfigDef) -> None:
    medium, low, text = Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        STATUS_INTERVAL,
        ConfigType.INT,
        10_000,
        low,
        "Milliseconds between reports to the server of the position that is not needed again.",
        validator=Range(100),
    )
    definition.define(
        MAX_BATCH, ConfigType.INT, 2048, medium, "Maximum number of events per poll.", validator=Range(1)
    )
    definition.define(
        POLL_INTERVAL,
        ConfigType.LONG,
        500,
        medium,
        "Milliseconds to wait for changes before an empty poll; changes end the wait.",
        validator=Range(1),
    )
    definition.define(
        HEARTBEAT,
        ConfigType.INT,
        0,
        medium,
        "Milliseconds between heartbeat events, which store the position while captured tables do not "
        "change; 0: none.",
        validator=Range(0),
    )
    definition.define(
        HEARTBEAT_PREFIX,
        text,
        "__debezium-heartbeat",
        low,
        "Begin of the name of the topic of heartbeats; topic.prefix follows.",
    )
    definition.define(
        RETRY_WAIT,
        ConfigType.LONG,
        10_000,
        low,
        "Milliseconds before connecting again after the connection broke.",
        validator=Range(0),
    )
    definition.define(
        MAX_RETRIES,
        ConfigType.INT,
        -1,
        low,
        "How often to connect again before the task fails; -1: without limit.",
        validator=Range(-1),
    )


def _define_events(definition: ConfigDef) -> None:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        TOPIC_PREFIX,
        text,
        NO_DEFAULT,
        high,
        "Name of the source: begin of the names of topics and schemas, and key of the offsets.",
        validator=NonEmptyString(),
    )
    definition.define(TOPIC_DELIMITER, text, ".", medium, "Text between the parts of a topic's name.")
    definition.define(
        SNAPSHOT_MODE,
        text,
        INITIAL,
        medium,
        "initial: read the tables first, unless there are offsets; initial_only: read them and stop; always: "
        "at every start; no_data (or never): only changes; when_needed: also when the stored position is "
        "lost.",
        validator=ValidString((INITIAL, INITIAL_ONLY, ALWAYS, NO_DATA, NEVER, WHEN_NEEDED)),
    )
    definition.define(
        FETCH_SIZE,
        ConfigType.INT,
        2048,
        low,
        "Number of rows that a snapshot reads at a time.",
        validator=Range(1),
    )
    for name, documentation in (
        (SCHEMA_INCLUDE, "Regular expressions of the schemas to capture."),
        (SCHEMA_EXCLUDE, "Regular expressions of the schemas not to capture."),
        (TABLE_INCLUDE, "Regular expressions of the tables to capture, as schema.table."),
        (TABLE_EXCLUDE, "Regular expressions of the tables not to capture, as schema.table."),
        (COLUMN_INCLUDE, "Regular expressions of the columns in events, as schema.table.column."),
        (COLUMN_EXCLUDE, "Regular expressions of the columns not in events, as schema.table.column."),
    ):
        definition.define(name, ConfigType.LIST, "", medium, documentation)


def _define_forms(definition: ConfigDef) -> None:
    medium, low, text = Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        TOMBSTONES,
        ConfigType.BOOLEAN,
        True,
        medium,
        "Write a record without value after each deletion, so that compaction removes the key.",
    )
    definition.define(
        SKIPPED,
        ConfigType.LIST,
        "t",
        low,
        "Operations without events: c (insert), u, d, t (truncate), or none.",
        validator=ValidString(("c", "u", "d", "t", "none")),
    )
    definition.define(
        TIME_MODE,
        text,
        "adaptive",
        medium,
        "Form of times: adaptive (Debezium's types by the column's precision), "
        "adaptive_time_microseconds, or connect (Connect's types, milliseconds).",
        validator=ValidString(("adaptive", "adaptive_time_microseconds", "connect")),
    )
    definition.define(
        DECIMAL_MODE,
        text,
        "precise",
        medium,
        "Form of NUMERIC: precise (Decimal), string or double.",
        validator=ValidString(("precise", "string", "double")),
    )
    definition.define(
        BINARY_MODE,
        text,
        "bytes",
        low,
        "Form of BYTEA: bytes, base64 or hex.",
        validator=ValidString(("bytes", "base64", "hex")),
    )
    definition.define(
        INTERVAL_MODE,
        text,
        "numeric",
        low,
        "Form of INTERVAL: numeric (microseconds) or string (ISO 8601).",
        validator=ValidString(("numeric", "string")),
    )
    definition.define(
        UNKNOWN_TYPES,
        ConfigType.BOOLEAN,
        False,
        medium,
        "Include columns of types without a mapping as the bytes of their text, instead of leaving them out.",
    )
    definition.define(
        PLACEHOLDER,
        text,
        "__debezium_unavailable_value",
        medium,
        "Stands for a large value that an update did not change, and the server does not send.",
    )


def postgres_config() -> ConfigDef:
    definition = ConfigDef()
    for define in (_define_database, _define_events, _define_forms, _define_stream, _define_running):
        define(definition)
    return definition


def check_postgres(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of names, regular expressions and combinations."""
    slot, prefix = values[SLOT], values[TOPIC_PREFIX]
    if slot.value and not _SLOT_NAME.fullmatch(slot.value):
        slot.errors.append("Slot names have 1 to 63 lower-case letters, digits and underscores.")
    if prefix.value and not _TOPIC_PREFIX.fullmatch(prefix.value):
        prefix.errors.append("Only letters, digits, '.', '_' and '-' are allowed.")
    for include, exclude in zip(_LISTS[::2], _LISTS[1::2], strict=True):
        if values[include].value and values[exclude].value:
            values[exclude].errors.append(f"{include} and {exclude} are exclusive.")
    for name in _LISTS:
        try:
            patterns(name, values[name].value or [])
        except ConfigError as error:
            values[name].errors.append(str(error))


def patterns(name: str, texts: list[str]) -> list[re.Pattern[str]]:
    try:
        return [re.compile(each, re.IGNORECASE) for each in texts]
    except re.error as error:
        raise ConfigError.invalid(name, texts, f"not a regular expression: {error}") from error


def connection_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of psycopg."""
    password = config[PASSWORD]
    found = {
        "host": config[HOST],
        "port": config[PORT],
        "user": config[USER],
        "password": password.value if isinstance(password, Password) else None,
        "dbname": config[DATABASE],
        "connect_timeout": 10,
        "application_name": "moldau change data capture",
        "keepalives_idle": 30,
    }
    for name, target in _SSL.items():
        value = config[name]
        found[target] = value.value if isinstance(value, Password) else value
    return {name: value for name, value in found.items() if value is not None}


def type_modes(config: Mapping[str, Any]) -> TypeModes:
    return TypeModes(
        config[TIME_MODE],
        config[DECIMAL_MODE],
        config[BINARY_MODE],
        config[INTERVAL_MODE],
        config[UNKNOWN_TYPES],
    )


class TableFilter:
    """Which schemas, tables and columns are captured."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        found = {name: patterns(name, config[name]) for name in _LISTS}
        self._schemas = found[SCHEMA_INCLUDE], found[SCHEMA_EXCLUDE]
        self._tables = found[TABLE_INCLUDE], found[TABLE_EXCLUDE]
        self._columns = found[COLUMN_INCLUDE], found[COLUMN_EXCLUDE]

    def captures(self, schema: str, table: str) -> bool:
        return _passes(self._schemas, schema) and _passes(self._tables, f"{schema}.{table}")

    def includes(self, schema: str, table: str, column: str) -> bool:
        return _passes(self._columns, f"{schema}.{table}.{column}")


def _passes(lists: tuple[list[re.Pattern[str]], list[re.Pattern[str]]], name: str) -> bool:
    include, exclude = lists
    if include:
        return any(each.fullmatch(name) for each in include)
    return not any(each.fullmatch(name) for each in exclude)
