"""The task of the sources: reads the records of files that appear below a folder.

The offset of a file is the number of its records that were read, and its size; a file that has grown is
read on. Files are shared among tasks by a hash of their path, so each is read by one task.
"""

from __future__ import annotations

import gzip
import logging
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.connectors.objects.formats.catalog import format_of
from moldau.pipelines.connect.connectors.objects.storage import Storage, StorageKind
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import SourceContext, SourceTask

logger = logging.getLogger(__name__)

FILE, RECORDS, SIZE = "file", "records", "size"
TASK_INDEX, TASK_COUNT = "task.index", "task.count"
_WAIT_S: Final = 0.2


class FilesSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef, kind: StorageKind) -> None:
        self._definition = definition
        self._kind = kind
        self._waiting: list[tuple[str, int]] = []
        self._sizes: dict[str, int] = {}
        self._records: Iterator[SourceRecord] | None = None
        #: Files that were read, by the number of records that are not acknowledged yet.
        self._unacknowledged: dict[str, int] = {}
        self._finished: set[str] = set()
        self._listed_at = -1e9

    def start(self, context: SourceContext) -> None:
        self._context = context
        settings = self._settings = self._definition.parse(context.config)
        self._storage: Storage = self._kind.open(settings)
        self._format = format_of(settings["format.class"])
        self._folder: str = settings["topics.dir"].strip("/")
        self._index = int(context.config.get(TASK_INDEX, "0"))
        self._count = int(context.config.get(TASK_COUNT, "1"))

    def poll(self) -> Sequence[SourceRecord]:
        try:
            self._clean()
            records = self._next_records()
        except RetriableError:
            self._records = None
            self._context.wait(1.0)
            raise
        if not records:
            self._context.wait(_WAIT_S)
        return records

    def commit_record(self, record: SourceRecord) -> None:
        path = (record.source_partition or {})[FILE]
        self._unacknowledged[path] = self._unacknowledged.get(path, 0) - 1

    def stop(self) -> None:
        self._records = None

    def _next_records(self) -> list[SourceRecord]:
        if self._records is None:
            if not self._waiting and not self._list():
                return []
            path, size = self._waiting.pop(0)
            self._records = self._read(path, size)
        found = []
        for record in self._records:
            found.append(record)
            if len(found) >= self._settings["record.batch.max.size"]:
                break
        else:
            self._records = None
        for record in found:
            path = (record.source_partition or {})[FILE]
            self._unacknowledged[path] = self._unacknowledged.get(path, 0) + 1
        return found

    def _list(self) -> bool:
        """Look for new and grown files; return whether there are any."""
        now = time.monotonic()
        if now - self._listed_at < self._settings["poll.interval.ms"] / 1000:
            return False
        self._listed_at = now
        found = [
            (path, size)
            for path, size in self._storage.listed(self._folder)
            if self._is_ours(path) and self._sizes.get(path) != size
        ]
        stored = self._context.offsets([{FILE: path} for path, _ in found])
        for (path, size), offset in zip(found, stored, strict=True):
            self._sizes[path] = size
            if offset is None or offset.get(SIZE) != size:
                self._waiting.append((path, size))
        return bool(self._waiting)

    def _is_ours(self, path: str) -> bool:
        extension = self._format.extension
        done: str = self._settings["processed.dir"].strip("/")
        if not path.endswith((extension, f"{extension}.gz")) or (done and path.startswith(f"{done}/")):
            return False
        return zlib.crc32(path.encode()) % self._count == self._index

    def _read(self, path: str, size: int) -> Iterator[SourceRecord]:
        partition = {FILE: path}
        stored = self._context.offset(partition) or {}
        done = int(stored.get(RECORDS, 0))
        topic = self._topic(path)
        previous: SchemaAndValue | None = None
        try:
            for each in self._values(path, done):
                if previous is not None:
                    yield self._record(topic, partition, previous, done, None)
                previous = each
                done += 1
        except ConnectError as error:
            raise ConnectError(f"{path}: {error}") from error
        if previous is not None:
            yield self._record(topic, partition, previous, done, size)
        self._finished.add(path)

    def _values(self, path: str, skip: int) -> Iterator[SchemaAndValue]:
        with ExitStack() as stack:
            file = stack.enter_context(self._storage.reading(path))
            if path.endswith(".gz"):
                file = stack.enter_context(gzip.open(file))
            yield from self._format.read(file, skip, self._settings)

    def _record(
        self, topic: str, partition: Mapping[str, str], found: SchemaAndValue, done: int, size: int | None
    ) -> SourceRecord:
        # The size is stored with the last record only: a file without it is read on.
        offset = {RECORDS: done} if size is None else {RECORDS: done, SIZE: size}
        return SourceRecord(
            topic=topic,
            value_schema=found.schema,
            value=found.value,
            source_partition=partition,
            source_offset=offset,
        )

    def _topic(self, path: str) -> str:
        """Return the configured topic, or that of the folder, as the sinks write them."""
        topic: str | None = self._settings["topic"]
        if topic:
            return topic
        parts = path.removeprefix(f"{self._folder}/" if self._folder else "").split("/")
        if len(parts) < 2:
            raise ConnectError(f"The file {path} is in no folder of a topic: set the topic.")
        return parts[0]

    def _clean(self) -> None:
        """Move or delete files whose records are all acknowledged."""
        action: str = self._settings["after.processing"]
        for path in [each for each in self._finished if self._unacknowledged.get(each, 0) <= 0]:
            self._finished.discard(path)
            self._unacknowledged.pop(path, None)
            if action == "delete":
                self._storage.delete(path)
            elif action == "move":
                self._storage.move(path, f"{self._settings['processed.dir'].strip('/')}/{path}")
