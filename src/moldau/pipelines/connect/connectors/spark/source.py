"""The Spark source: a query of Spark stages rows, tasks of the files source read them into the topic.

So converters, transformations, offsets and exactly-once delivery are those of every source. The query runs
in the worker that runs the connector; all workers need the staging folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.objects.connectors import (
    DirectorySourceConnector,
    FilesSourceConnector,
)
from moldau.pipelines.connect.connectors.spark.query import Reading, StagingQuery
from moldau.pipelines.connect.sdk import ConnectorContext, SourceTask

_OPTION: Final = "option."
#: Settings of the files source, which the tasks are.
_TASKS: Final[Mapping[str, str]] = {
    "format.class": "parquet",
    "topics.dir": "rows",
    "poll.interval.ms": "200",
    "after.processing": "delete",
    "processed.dir": "",
}


def _definition() -> ConfigDef:
    definition = ConfigDef()
    settings: tuple[tuple[Any, ...], ...] = (
        (
            "format",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "Format of Spark: jdbc, csv, xml, orc, rate or one that is registered.",
            NonEmptyString(),
        ),
        ("topic", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Topic to write to.", NonEmptyString()),
        (
            "staging.dir",
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "Folder for the checkpoint and for rows on their way, the same for all workers.",
            NonEmptyString(),
        ),
        (
            "read.mode",
            ConfigType.STRING,
            "stream",
            Importance.HIGH,
            "stream: new rows, for formats that can stream. batch: everything at every interval.",
            ValidString(("stream", "batch")),
        ),
        (
            "read.schema",
            ConfigType.STRING,
            None,
            Importance.MEDIUM,
            "Columns with their types, id BIGINT, name STRING; by default Spark infers them.",
        ),
        (
            "read.columns",
            ConfigType.STRING,
            None,
            Importance.MEDIUM,
            "Expressions to select, separated by semicolons; all columns by default.",
        ),
        (
            "interval.ms",
            ConfigType.LONG,
            1000,
            Importance.MEDIUM,
            "Time between micro-batches, or between reads in batch mode, in ms.",
            Range(0),
        ),
        ("record.batch.max.size", ConfigType.INT, 1000, Importance.LOW, "Records of a poll.", Range(1)),
    )
    for name, kind, default, importance, text, *validator in settings:
        definition.define(
            name, kind, default, importance, text, validator=validator[0] if validator else None
        )
    return definition


class SparkSourceConnector(FilesSourceConnector):
    config = _definition()
    _query: StagingQuery | None = None

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        return self.config.validate(properties)

    def start(self, properties: Mapping[str, str], context: ConnectorContext) -> None:
        super().start(properties, context)
        settings = self.config.parse(properties)
        columns = (settings["read.columns"] or "").split(";")
        reading = Reading(
            settings["format"],
            {
                name.removeprefix(_OPTION): value
                for name, value in properties.items()
                if name.startswith(_OPTION)
            },
            settings["read.schema"],
            settings["read.mode"] == "stream",
            settings["interval.ms"],
            tuple(each.strip() for each in columns if each.strip()),
        )
        folder = Path(settings["staging.dir"]).absolute()
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        self._query = StagingQuery(reading, folder, context.raise_error)
        self._query.start()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        folder = str(Path(self.properties["staging.dir"]).absolute())
        configs = super().task_configs(max_tasks)
        return [{**config, **_TASKS, "directory": folder} for config in configs]

    def task(self) -> SourceTask:
        return DirectorySourceConnector().task()
