"""The settings that the table sinks have in common, by the names of Iceberg's Kafka Connect sink.

Iceberg's settings begin with `iceberg.`, Delta's with `delta.`; after the prefix the names are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, ConfigValue, Importance, Range
from moldau.pipelines.connect.connectors.lake.rows.partitions import PartitionField, parse_partitions
from moldau.pipelines.connect.connectors.lake.store import LakeTable
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError

TABLES: Final = "tables"
DYNAMIC: Final = "tables.dynamic-enabled"
ROUTE_FIELD: Final = "tables.route-field"
COMMIT_BRANCH: Final = "tables.default-commit-branch"
ID_COLUMNS: Final = "tables.default-id-columns"
PARTITION_BY: Final = "tables.default-partition-by"
AUTO_CREATE: Final = "tables.auto-create-enabled"
EVOLVE: Final = "tables.evolve-schema-enabled"
FORCE_OPTIONAL: Final = "tables.schema-force-optional"
CASE_INSENSITIVE: Final = "tables.schema-case-insensitive"
REPLACE_NULL: Final = "tables.replace-null-with-default"
UPSERT: Final = "tables.upsert-mode-enabled"
CHANGE_FIELD: Final = "tables.cdc-field"
INTERVAL: Final = "control.commit.interval-ms"
COMMIT_ROWS: Final = "control.commit.max-rows"
RETRY: Final = "control.commit.retry-timeout-ms"
COMPACT_FILES: Final = "maintenance.compact-min-files"
TARGET_BYTES: Final = "maintenance.target-file-size-bytes"
SNAPSHOT_AGE: Final = "maintenance.snapshot-max-age-ms"
MAX_SNAPSHOTS: Final = "maintenance.max-snapshots"
#: The number of the task; the first one maintains the tables.
TASK_INDEX: Final = "task.index"
_TOPIC: Final = "${topic}"
_NOT_IN_NAMES: Final = re.compile(r"[^0-9A-Za-z_]")
_DAY_MS: Final = 86_400_000


_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
#: Name, type, default, importance, documentation, and validator if there is one.
_COMMON: Final[Sequence[tuple[Any, ...]]] = (
    (TABLES, ConfigType.LIST, "", _HIGH, "Tables to write, separated by commas. ${topic} is the topic."),
    (DYNAMIC, ConfigType.BOOLEAN, False, _MEDIUM, "Whether the route field contains the name of the table."),
    (ROUTE_FIELD, ConfigType.STRING, None, _MEDIUM, "Field of the value that decides the table of a record."),
    (
        ID_COLUMNS,
        ConfigType.LIST,
        "",
        _MEDIUM,
        "Columns that identify a row; by default those of the record's key.",
    ),
    (
        PARTITION_BY,
        ConfigType.STRING,
        None,
        _MEDIUM,
        "Partitioning of new tables: region, days(ts), bucket(id, 16).",
    ),
    (AUTO_CREATE, ConfigType.BOOLEAN, False, _MEDIUM, "Create tables that do not exist."),
    (EVOLVE, ConfigType.BOOLEAN, False, _MEDIUM, "Add columns, widen types and make columns optional."),
    (FORCE_OPTIONAL, ConfigType.BOOLEAN, False, _LOW, "Create all columns but those of the key as optional."),
    (
        CASE_INSENSITIVE,
        ConfigType.BOOLEAN,
        False,
        _LOW,
        "Find columns regardless of the case of their names.",
    ),
    (REPLACE_NULL, ConfigType.BOOLEAN, True, _LOW, "Write the default of a field in place of null."),
    (UPSERT, ConfigType.BOOLEAN, False, _MEDIUM, "Keep one row per key; a record without value deletes it."),
    (
        CHANGE_FIELD,
        ConfigType.STRING,
        None,
        _LOW,
        "Field with the kind of a change: d or delete deletes the row.",
    ),
    (INTERVAL, ConfigType.LONG, 5000, _MEDIUM, "Time between two commits of a task in ms.", Range(100)),
    (COMMIT_ROWS, ConfigType.INT, 500_000, _LOW, "Rows after which a task commits earlier.", Range(1)),
    (RETRY, ConfigType.LONG, 300_000, _LOW, "Time in ms for which failed commits are repeated."),
    (COMPACT_FILES, ConfigType.INT, 10, _LOW, "Small files of similar size that are merged; 0: never."),
    (
        TARGET_BYTES,
        ConfigType.LONG,
        128 << 20,
        _LOW,
        "Size of files in bytes from which they are not merged.",
    ),
    (
        SNAPSHOT_AGE,
        ConfigType.LONG,
        5 * _DAY_MS,
        _LOW,
        "Age in ms after which versions are removed; -1: never.",
    ),
)


def common_definition(prefix: str, defaults: Mapping[str, Any]) -> ConfigDef:
    """Return the common settings below a prefix, some with other defaults."""
    definition = ConfigDef()
    for name, kind, default, importance, text, *validator in _COMMON:
        definition.define(
            prefix + name,
            kind,
            defaults.get(name, default),
            importance,
            text,
            validator=validator[0] if validator else None,
        )
    return definition


@dataclass(frozen=True, slots=True)
class LakeSettings:
    """The parsed settings. `routes` are the expressions of tables for the route field."""

    connector: str
    prefix: str
    values: Mapping[str, Any]
    properties: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[self.prefix + name]

    @property
    def tables(self) -> list[str]:
        return [each for each in self[TABLES] if each]

    @property
    def upserts(self) -> bool:
        return bool(self[UPSERT] or self[CHANGE_FIELD])

    @property
    def is_single_table(self) -> bool:
        """Whether all records go to one table, whose offsets tell where to continue."""
        tables = self.tables
        return not self[DYNAMIC] and not self[ROUTE_FIELD] and len(tables) == 1 and _TOPIC not in tables[0]

    def of_table(self, table: str, name: str) -> str | None:
        """Return a setting of one table: `iceberg.table.NAME.id-columns`."""
        return self.properties.get(f"{self.prefix}table.{table}.{name}")

    def id_columns(self, table: str) -> list[str]:
        text = self.of_table(table, "id-columns")
        return (
            self[ID_COLUMNS] if text is None else [each.strip() for each in text.split(",") if each.strip()]
        )

    def partitions(self, table: str) -> list[PartitionField]:
        return parse_partitions(self.of_table(table, "partition-by") or self[PARTITION_BY] or "")

    def below(self, name: str) -> dict[str, str]:
        """Return the settings below a prefix, such as `catalog.`, without it."""
        start = self.prefix + name
        return {
            key.removeprefix(start): value for key, value in self.properties.items() if key.startswith(start)
        }


def parsed(definition: ConfigDef, prefix: str, properties: Mapping[str, str]) -> LakeSettings:
    return LakeSettings(properties.get("name", "connector"), prefix, definition.parse(properties), properties)


def table_of_topic(table: str, topic: str) -> str:
    """Return the table with the topic in the place of the variable; dots and dashes become underscores."""
    return table.replace(_TOPIC, _NOT_IN_NAMES.sub("_", topic))


def check(values: dict[str, ConfigValue], prefix: str, properties: Mapping[str, str]) -> None:
    """Add the errors of combinations of settings."""
    dynamic, route = values[prefix + DYNAMIC], values[prefix + ROUTE_FIELD]
    if dynamic.value and not route.value:
        route.errors.append(f"{prefix}{DYNAMIC} needs {prefix}{ROUTE_FIELD}.")
    if not dynamic.value and not [each for each in values[prefix + TABLES].value or () if each]:
        values[prefix + TABLES].errors.append(
            f'Missing required configuration "{prefix}{TABLES}": name a table, or enable {prefix}{DYNAMIC}.'
        )
    for name, text in properties.items():
        if name == prefix + PARTITION_BY or (
            name.startswith(f"{prefix}table.") and name.endswith(".partition-by")
        ):
            shown = values[prefix + PARTITION_BY]
            try:
                parse_partitions(text)
            except ConfigError as error:
                shown.errors.append(f"{name}: {error}")
        if name.startswith(f"{prefix}table.") and name.endswith(".route-regex"):
            try:
                re.compile(text)
            except re.error as error:
                values[prefix + TABLES].errors.append(f"{name}: not a regular expression: {error}")


def alter(
    settings: LakeSettings,
    open_table: Callable[[str], LakeTable],
    offsets: Mapping[TopicPartition, int | None],
) -> None:
    """Change the offsets in all tables of the configuration."""
    if settings[DYNAMIC]:
        raise ConnectError(
            f"With {settings.prefix}{DYNAMIC} the tables are not known, which hold the offsets: change the "
            "snapshot property of each table, or use a connector with another name."
        )
    names = {table_of_topic(table, topic) for table in settings.tables for topic, _ in offsets}
    for name in sorted(names):
        open_table(name).set_offsets(offsets)
