"""The settings of the JDBC sink, with Confluent's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
    Width,
)
from moldau.pipelines.connect.connectors.jdbc.settings import check_connection, define_connection

INSERT_MODE: Final = "insert.mode"
INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
BATCH_SIZE: Final = "batch.size"
DELETE_ENABLED: Final = "delete.enabled"
TABLE_FORMAT: Final = "table.name.format"
PK_MODE: Final = "pk.mode"
NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
PK_FIELDS: Final = "pk.fields"
FIELDS: Final = "fields.whitelist"
AUTO_CREATE: Final = "auto.create"
AUTO_EVOLVE: Final = "auto.evolve"
MAX_RETRIES: Final = "max.retries"
RETRY_BACKOFF: Final = "retry.backoff.ms"
NULL_TO_DEFAULT: Final = "replace.null.with.default"
KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


def sink_config() -> ConfigDef:
    definition = define_connection(ConfigDef())
    _define_writes(definition)
    _define_mapping(definition)
    _define_tables(definition)
    return definition


def _define_writes(definition: ConfigDef) -> None:
    definition.define(
        INSERT_MODE,
        ConfigType.STRING,
        INSERT,
        Importance.HIGH,
        "How records become rows: insert; upsert (insert, or update the row with the same key: a repeated "
        "record changes nothing); update.",
        validator=ValidString((INSERT, UPSERT, UPDATE), ignore_case=True),
        **_shown("Writes", 1, "Insert Mode"),
    ).define(
        BATCH_SIZE,
        ConfigType.INT,
        3000,
        Importance.MEDIUM,
        "Maximum number of records in one statement.",
        validator=Range(1),
        **_shown("Writes", 2, "Batch Size", Width.SHORT),
    ).define(
        DELETE_ENABLED,
        ConfigType.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Delete the row of a record whose value is null. Requires pk.mode=record_key.",
        **_shown("Writes", 3, "Enable deletes", Width.SHORT),
    ).define(
        MAX_RETRIES,
        ConfigType.INT,
        10,
        Importance.MEDIUM,
        "How often to repeat a write that failed because of the connection or a conflict, before the task "
        "fails.",
        validator=Range(0),
        **_shown("Retries", 1, "Maximum Retries", Width.SHORT),
    ).define(
        RETRY_BACKOFF,
        ConfigType.INT,
        3000,
        Importance.MEDIUM,
        "Milliseconds to wait before a repetition.",
        validator=Range(0),
        **_shown("Retries", 2, "Retry Backoff (millis)", Width.SHORT),
    )


def _define_mapping(definition: ConfigDef) -> None:
    definition.define(
        TABLE_FORMAT,
        ConfigType.STRING,
        "${topic}",
        Importance.MEDIUM,
        "Name of the table, in which ${topic} is replaced; it may be qualified: schema.${topic}.",
        validator=NonEmptyString(),
        **_shown("Data Mapping", 1, "Table Name Format"),
    ).define(
        PK_MODE,
        ConfigType.STRING,
        NONE,
        Importance.HIGH,
        "Which columns are the key: none; kafka (topic, partition and offset of the record); record_key "
        "(fields of the key, or the key itself); record_value (fields of the value).",
        validator=ValidString((NONE, KAFKA, RECORD_KEY, RECORD_VALUE), ignore_case=True),
        **_shown("Data Mapping", 2, "Primary Key Mode"),
    ).define(
        PK_FIELDS,
        ConfigType.LIST,
        "",
        Importance.MEDIUM,
        "Names of the key's columns. kafka: three, by default __connect_topic, __connect_partition, "
        "__connect_offset. record_key and record_value: the fields to use, by default all; the column's "
        "name for a key that is no struct.",
        **_shown("Data Mapping", 3, "Primary Key Fields"),
    ).define(
        FIELDS,
        ConfigType.LIST,
        "",
        Importance.MEDIUM,
        "Fields of the value to write beside the key; by default all.",
        **_shown("Data Mapping", 4, "Fields Whitelist"),
    ).define(
        NULL_TO_DEFAULT,
        ConfigType.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Write the default of a field's schema instead of null.",
        **_shown("Data Mapping", 5, "Replace null value with default value"),
    )


def _define_tables(definition: ConfigDef) -> None:
    definition.define(
        AUTO_CREATE,
        ConfigType.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Create missing tables by the schemas of records.",
        **_shown("DDL Support", 1, "Auto-Create", Width.SHORT),
    ).define(
        AUTO_EVOLVE,
        ConfigType.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Add missing columns to tables. Their fields must be optional or have a default.",
        **_shown("DDL Support", 2, "Auto-Evolve", Width.SHORT),
    )


def check_sink(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of combinations of settings."""
    check_connection(values)
    pk_mode, insert_mode = _lower(values[PK_MODE].value), _lower(values[INSERT_MODE].value)
    if values[DELETE_ENABLED].value and pk_mode != RECORD_KEY:
        values[DELETE_ENABLED].errors.append("Deletes are only supported for pk.mode record_key")
    if insert_mode in (UPSERT, UPDATE) and pk_mode == NONE:
        values[PK_MODE].errors.append(f"insert.mode {insert_mode} needs a key: set pk.mode")
    fields = values[PK_FIELDS].value or []
    if pk_mode == KAFKA and len(fields) not in (0, len(KAFKA_COLUMNS)):
        values[PK_FIELDS].errors.append(
            f"pk.mode kafka needs no names or exactly three, for example {','.join(KAFKA_COLUMNS)}"
        )


def _lower(value: Any) -> str:
    return str(value).lower()


def _shown(group: str, order: int, name: str, width: Width = Width.MEDIUM) -> dict[str, Any]:
    return {"group": group, "order_in_group": order, "width": width, "display_name": name}
