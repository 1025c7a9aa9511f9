"""The Delta sink: configuration, tasks, and offsets that a user sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
)
from moldau.pipelines.connect.connectors.lake.settings import (
    AUTO_CREATE,
    EVOLVE,
    TABLES,
    TASK_INDEX,
    LakeSettings,
    alter,
    check,
    common_definition,
    parsed,
)
from moldau.pipelines.connect.connectors.lake.store import LakeTable
from moldau.pipelines.connect.connectors.lake.task import LakeSinkTask, OpenTable
from moldau.pipelines.connect.sdk import SinkConnector, SinkTask

PREFIX: Final = "delta."
_LOCATION: Final = "location"


class DeltaSinkConnector(SinkConnector):
    config = common_definition(PREFIX, {TABLES: "${topic}", AUTO_CREATE: True, EVOLVE: True}).define(
        PREFIX + _LOCATION,
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "Folder of the tables: a path, s3://BUCKET/PREFIX, gs://... or abfss://... Settings that begin with "
        "delta.storage. are the options of the storage, such as delta.storage.AWS_REGION.",
        validator=NonEmptyString(),
    )

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        check(values, PREFIX, properties)
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [{**self.properties, TASK_INDEX: str(index)} for index in range(max_tasks)]

    def task(self) -> SinkTask:
        return LakeSinkTask(lambda properties: parsed(self.config, PREFIX, properties), delta_tables)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Store the offsets in the tables, which decide where tasks continue."""
        settings = parsed(self.config, PREFIX, properties)
        alter(settings, delta_tables(settings), offsets)
        return True


def delta_tables(settings: LakeSettings) -> OpenTable:
    """Return a function that opens tables below the location; `a.b` is the folder `a/b`."""
    from moldau.pipelines.connect.connectors.lake.delta.table import DeltaLakeTable

    root = settings[_LOCATION].rstrip("/")
    opened: dict[str, DeltaLakeTable] = {}

    def open_table(name: str) -> LakeTable:
        if name not in opened:
            opened[name] = DeltaLakeTable(name, f"{root}/{name.replace('.', '/')}", settings)
        return opened[name]

    return open_table
