"""FileStreamSink: appends the values of records to a file, a line each.

Lines are written as Java prints values: null, true, {a=1, b=2}, Struct{a=1}. Delivery is at least once: a
task that is killed between flush and commit writes its last lines again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.values.text import to_string
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

FILE: Final = "file"


class FileStreamSinkConnector(SinkConnector):
    config = ConfigDef().define(
        FILE,
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "Path of the file to append to; the standard output of the task if not set.",
    )

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def task(self) -> SinkTask:
        return FileStreamSinkTask()

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class FileStreamSinkTask(SinkTask):
    def __init__(self) -> None:
        self._file: TextIO = sys.stdout

    def start(self, context: SinkContext) -> None:
        path = FileStreamSinkConnector.config.parse(context.config)[FILE]
        if not path:
            return
        try:
            self._file = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed by stop
        except OSError as error:
            message = f"Couldn't find or create file '{path}' for FileStreamSinkTask"
            raise ConnectError(message) from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._file.writelines(f"{to_string(record.value_schema, record.value)}\n" for record in records)
        # Lines are visible at once, as those of Kafka's connector.
        self._file.flush()

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._file.flush()

    def stop(self) -> None:
        if self._file is not sys.stdout:
            self._file.close()
