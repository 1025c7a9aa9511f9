"""The Iceberg sink: configuration, tasks, and offsets that a user sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, ConfigValue, Importance, Range
from moldau.pipelines.connect.connectors.lake.settings import (
    COMMIT_BRANCH,
    MAX_SNAPSHOTS,
    TASK_INDEX,
    LakeSettings,
    alter,
    check,
    common_definition,
    parsed,
)
from moldau.pipelines.connect.connectors.lake.store import LakeTable
from moldau.pipelines.connect.connectors.lake.task import LakeSinkTask, OpenTable
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.sdk import SinkConnector, SinkTask

PREFIX: Final = "iceberg."
_LOW: Final = Importance.LOW


def _definition() -> ConfigDef:
    return (
        common_definition(PREFIX, {})
        .define("iceberg.catalog", ConfigType.STRING, "iceberg", Importance.MEDIUM, "Name of the catalog.")
        .define(
            "iceberg.catalog.type",
            ConfigType.STRING,
            None,
            Importance.HIGH,
            "Kind of the catalog: rest, hive, sql, glue, dynamodb or bigquery. All settings that begin with "
            "iceberg.catalog. are passed to it.",
        )
        .define(
            PREFIX + MAX_SNAPSHOTS,
            ConfigType.INT,
            1000,
            _LOW,
            "Snapshots of a table that are kept at most.",
            validator=Range(1),
        )
        .define(
            PREFIX + COMMIT_BRANCH, ConfigType.STRING, None, _LOW, "Branch to commit to; main by default."
        )
    )


class IcebergSinkConnector(SinkConnector):
    config = _definition()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        from moldau.pipelines.connect.connectors.lake.iceberg.catalog import catalog_properties

        values = super().validate(properties)
        check(values, PREFIX, properties)
        start = "iceberg.catalog."
        given = {
            name.removeprefix(start): text for name, text in properties.items() if name.startswith(start)
        }
        try:
            catalog_properties(given)
        except ConfigError as error:
            values["iceberg.catalog.type"].errors.append(str(error))
        for name in values[PREFIX + "tables"].value or ():
            if name and "." not in name:
                values[PREFIX + "tables"].errors.append(
                    f"The table {name} has no namespace: NAMESPACE.{name}"
                )
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [{**self.properties, TASK_INDEX: str(index)} for index in range(max_tasks)]

    def task(self) -> SinkTask:
        return LakeSinkTask(lambda properties: parsed(self.config, PREFIX, properties), iceberg_tables)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Store the offsets in the tables, which decide where tasks continue."""
        settings = parsed(self.config, PREFIX, properties)
        alter(settings, iceberg_tables(settings), offsets)
        return True


def iceberg_tables(settings: LakeSettings) -> OpenTable:
    """Return a function that opens tables of the configured catalog."""
    from moldau.pipelines.connect.connectors.lake.iceberg.catalog import open_catalog
    from moldau.pipelines.connect.connectors.lake.iceberg.table import IcebergTable

    catalog = open_catalog(settings)
    opened: dict[str, IcebergTable] = {}

    def open_table(name: str) -> LakeTable:
        if name not in opened:
            opened[name] = IcebergTable(catalog, name, settings)
        return opened[name]

    return open_table
