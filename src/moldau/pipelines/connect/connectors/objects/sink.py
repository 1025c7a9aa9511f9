"""The task of the sinks: collects records per topic partition and writes files."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.connectors.objects.formats.catalog import format_of
from moldau.pipelines.connect.connectors.objects.partitioning import partitioner_of, zone_of
from moldau.pipelines.connect.connectors.objects.storage import StorageKind
from moldau.pipelines.connect.connectors.objects.writer import Layout, PartitionFiles
from moldau.pipelines.connect.data.errors import RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkContext, SinkTask

logger = logging.getLogger(__name__)


class FilesSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef, kind: StorageKind, renamed: Mapping[str, str]) -> None:
        self._definition = definition
        self._renamed = renamed
        self._kind = kind
        self._partitions: dict[TopicPartition, PartitionFiles] = {}
        self._returned: dict[TopicPartition, int] = {}

    def start(self, context: SinkContext) -> None:
        self._context = context
        settings = self._settings = common_names(self._definition.parse(context.config), self._renamed)
        self._layout = Layout(
            self._kind.open(settings),
            format_of(settings["format.class"]),
            partitioner_of(settings),
            settings,
        )
        self._schedule_ms: int = settings["rotate.schedule.interval.ms"]
        self._rotate_at = self._next_rotation()

    def put(self, records: Sequence[SinkRecord]) -> None:
        try:
            for record in records:
                if record.value is None and self._settings["behavior.on.null.values"] == "ignore":
                    self._skip(record)
                else:
                    self._report(self._of(record).put(record))
        except RetriableError:
            self._context.retry_after(self._settings["retry.backoff.ms"])
            raise
        for each in self._partitions.values():
            self._report(each.settle())
        if self._schedule_ms > 0 or any(each.stored is not None for each in self._partitions.values()):
            self._context.request_commit()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets after the written files; rotate files if the schedule says so."""
        if self._schedule_ms > 0:
            self._rotate_by_schedule()
            self._context.request_commit()
        found = {each: files.stored for each, files in self._partitions.items() if files.stored is not None}
        new = {each: at for each, at in found.items() if self._returned.get(each) != at and each in offsets}
        self._returned.update(new)
        return new

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget records that are in no file; the next owner reads them again."""
        for each in partitions:
            self._partitions.pop(each, None)
            self._returned.pop(each, None)

    def stop(self) -> None:
        self._partitions.clear()

    def _of(self, record: SinkRecord) -> PartitionFiles:
        partition = TopicPartition(record.original_topic, record.original_partition)
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = PartitionFiles(partition, self._layout)
        return found

    def _skip(self, record: SinkRecord) -> None:
        files = self._of(record)
        files.next = max(files.next, record.original_offset + 1)
        if not files.has_rows:
            files.stored = files.next

    def _report(self, refused: Iterable[Refused]) -> None:
        for record, error in refused:
            self._context.report(record, error)

    def _rotate_by_schedule(self) -> None:
        if time.time() < self._rotate_at:
            return
        try:
            for each in self._partitions.values():
                if each.has_rows:
                    self._report(each.rotate())
        except RetriableError as error:
            logger.warning("Files are written again: %s", error)
            self._rotate_at = time.time() + self._settings["retry.backoff.ms"] / 1000
            return
        self._rotate_at = self._next_rotation()

    def _next_rotation(self) -> float:
        """Return the next multiple of the interval since midnight."""
        if self._schedule_ms <= 0:
            return 0.0
        now = datetime.now(zone_of(self._settings["timezone"] or "UTC"))
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        interval = self._schedule_ms / 1000
        passed = (now - midnight).total_seconds()
        return midnight.timestamp() + (passed // interval + 1) * interval


def common_names(settings: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings by the names that all stores have in common."""
    names = {theirs: ours for ours, theirs in renamed.items()}
    return {names.get(name, name): value for name, value in settings.items()}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for combinations that are not valid."""
    format_of(settings["format.class"])
    partitioner_of(settings)
    if settings["rotate.schedule.interval.ms"] > 0:
        zone_of(settings["timezone"])
