"""The files of one topic partition that are not written yet.

All files of a partition are written at the same record (rotation), so one offset tells what is stored.
Where a file begins and ends depends on the records alone, and its name contains its first offset: a task
that is killed writes the same files again, with the same content, in place of those that it had written.
This makes delivery exactly once, unless files are rotated by the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.connectors.objects.formats.catalog import FileBuffer, Format
from moldau.pipelines.connect.connectors.objects.formats.json import compressed
from moldau.pipelines.connect.connectors.objects.partitioning import Partitioner
from moldau.pipelines.connect.connectors.objects.storage import Storage
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema


@dataclass(slots=True)
class Layout:
    """What the files of all partitions have in common."""

    storage: Storage
    format: Format
    partitioner: Partitioner
    settings: Mapping[str, Any]

    def path(self, partition: TopicPartition, folder: str, offset: int) -> str:
        settings = self.settings
        width: int = settings["filename.offset.zero.pad.width"]
        name = settings["file.delim"].join([partition.topic, str(partition.partition), f"{offset:0{width}}"])
        parts = [settings["topics.dir"].strip("/"), partition.topic, folder, name + self.extension]
        return str(settings["directory.delim"].join(part for part in parts if part))

    @property
    def extension(self) -> str:
        extension = self.format.extension
        if extension == ".parquet" and self.settings["parquet.codec"] != "none":
            return f".{self.settings['parquet.codec']}{extension}"
        return f"{extension}.gz" if self.is_compressed else extension

    @property
    def is_compressed(self) -> bool:
        return self.settings["compression.type"] == "gzip" and not self.format.has_schema


@dataclass(slots=True)
class _File:
    """A file that is not written yet. Its content is made once, also if it is written several times."""

    path: str
    buffer: FileBuffer
    schema: Schema | None
    content: bytes | None = field(default=None)


class PartitionFiles:
    def __init__(self, partition: TopicPartition, layout: Layout) -> None:
        self._partition = partition
        self._layout = layout
        self._files: dict[str, _File] = {}
        self._count = 0
        self._base_ms: int | None = None
        self._folder: str | None = None
        self._rotating = False
        #: The offset after the last record that was taken, and the one up to which files are written.
        self.next = -1
        self.stored: int | None = None

    @property
    def has_rows(self) -> bool:
        return self._count > 0

    def put(self, record: SinkRecord) -> Iterator[Refused]:
        """Take a record over; write the files that it completes. Return records that do not fit."""
        if self._rotating:
            yield from self.rotate()
        offset = record.original_offset
        if offset < self.next:
            # The worker puts records again after a failure to write.
            return
        try:
            folder = self._layout.partitioner.folder(record)
            moment = self._layout.partitioner.time_ms(record)
        except DataError as error:
            self.next = offset + 1
            yield Refused(record, error)
            return
        if self._count and self._ends_before(record, folder, moment):
            yield from self.rotate()
        try:
            self._file(record, folder, offset).buffer.add(record)
        except DataError as error:
            yield Refused(record, error)
        self._folder = folder
        self._base_ms = moment if self._base_ms is None else self._base_ms
        self._count += 1
        self.next = offset + 1
        if self._count >= self._layout.settings["flush.size"]:
            yield from self.rotate()

    def settle(self) -> Iterator[Refused]:
        for each in self._files.values():
            yield from each.buffer.settle()

    def rotate(self) -> Iterator[Refused]:
        """Write all files; `RetriableError` if that has to be repeated."""
        yield from self.settle()
        self._rotating = True
        for folder, each in list(self._files.items()):
            if each.content is None:
                data = each.buffer.content()
                each.content = compressed(data, "gzip") if self._layout.is_compressed and data else data
            if each.content:
                self._layout.storage.write(each.path, each.content)
            del self._files[folder]
        self._count, self._base_ms, self._folder, self._rotating = 0, None, None, False
        self.stored = self.next

    def _ends_before(self, record: SinkRecord, folder: str, moment: int | None) -> bool:
        """Return whether the files end before this record."""
        opened = self._files.get(folder)
        if self._layout.format.has_schema and opened is not None and opened.schema != record.value_schema:
            return True
        interval: int = self._layout.settings["rotate.interval.ms"]
        if interval <= 0 or not self._layout.partitioner.is_timed:
            return False
        late = moment is not None and self._base_ms is not None and moment - self._base_ms >= interval
        return late or folder != self._folder

    def _file(self, record: SinkRecord, folder: str, offset: int) -> _File:
        found = self._files.get(folder)
        if found is None:
            path = self._layout.path(self._partition, folder, offset)
            buffer = self._layout.format.buffer(self._layout.settings)
            found = self._files[folder] = _File(path, buffer, record.value_schema)
        return found
