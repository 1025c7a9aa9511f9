"""The task of the sources: reads the records of files that appear below a folder.

The offset of a file is the number of its records that were read, with a fingerprint of its content then; with
the last record also its size and time. A file that has grown is read on, one that was replaced is read from
its beginning. When a file was moved or deleted, its offset is forgotten: the next file of that name is a new
one. Files are shared among tasks by a hash of their path, so each is read by one task.

A file that cannot be read fails the task; with `errors.tolerance=all` it is logged, left where it is, and
the next one is read.
"""

from __future__ import annotations

import gzip
import logging
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.connectors.objects.formats.catalog import format_of
from moldau.pipelines.connect.connectors.objects.storage import Storage, StorageKind, StoredFile
from moldau.pipelines.connect.data.errors import ConnectError, DataError, RetriableError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import Offset, Partition, SourceContext, SourceTask

logger = logging.getLogger(__name__)

FILE, RECORDS, SIZE = "file", "records", "size"
MODIFIED, CONTENT = "modified", "content"
TASK_INDEX, TASK_COUNT = "task.index", "task.count"
_WAIT_S: Final = 0.2
_AGAIN_S: Final = 1.0
#: A file that the store has but cannot be read this often is damaged.
_MAX_ATTEMPTS: Final = 5
#: What readers of formats raise for damaged content.
_DAMAGED: Final = (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, IndexError)


class FilesSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef, kind: StorageKind) -> None:
        self._definition = definition
        self._kind = kind
        #: Files as they were when they were listed.
        self._seen: dict[str, StoredFile] = {}
        self._waiting: deque[StoredFile] = deque()
        #: The file that is being read, and its records.
        self._current: StoredFile | None = None
        self._records: Iterator[SourceRecord] | None = None
        #: Offsets of the records that `poll` returned: newer than those that are stored.
        self._returned: dict[str, Offset] = {}
        self._attempts = 0
        self._error: ConnectError | None = None
        #: Files that were read, and the number of records of each file that are not acknowledged yet.
        self._finished: dict[str, StoredFile] = {}
        self._unacknowledged: dict[str, int] = {}
        self._acknowledging = threading.Lock()
        self._pending: list[tuple[Partition, Offset | None]] = []
        self._listed_at = -1e9

    def start(self, context: SourceContext) -> None:
        self._context = context
        settings = self._settings = self._definition.parse(context.config)
        self._storage: Storage = self._kind.open(settings)
        self._format = format_of(settings["format.class"])
        self._folder: str = settings["topics.dir"].strip("/")
        self._index = int(context.config.get(TASK_INDEX, "0"))
        self._count = int(context.config.get(TASK_COUNT, "1"))
        self._tolerates = context.config.get("errors.tolerance", "").strip().lower() == "all"

    def poll(self) -> Sequence[SourceRecord]:
        if self._error is not None:
            raise self._error
        try:
            self._clean()
            records = self._next_records()
        except RetriableError:
            self._context.wait(_AGAIN_S)
            raise
        if not records:
            self._context.wait(_WAIT_S)
        return records

    def pending_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        pending, self._pending = self._pending, []
        return pending

    def commit_record(self, record: SourceRecord) -> None:
        path = (record.source_partition or {})[FILE]
        with self._acknowledging:
            self._unacknowledged[path] = self._unacknowledged.get(path, 0) - 1

    def stop(self) -> None:
        self._records = None

    def _next_records(self) -> list[SourceRecord]:
        if self._records is None:
            if not self._waiting and not self._list():
                return []
            self._begin(self._waiting.popleft())
        found: list[SourceRecord] = []
        try:
            for record in self._records or ():
                found.append(record)
                if len(found) >= self._settings["record.batch.max.size"]:
                    break
            else:
                self._end()
        except RetriableError:
            # The records in hand are not returned; reading continues after those that were.
            self._read_again()
            raise
        except ConnectError as error:
            self._error = error
        with self._acknowledging:
            for record in found:
                path = (record.source_partition or {})[FILE]
                self._unacknowledged[path] = self._unacknowledged.get(path, 0) + 1
                self._returned[path] = record.source_offset or {}
        if self._error is not None and not found:
            raise self._error
        return found

    def _begin(self, file: StoredFile) -> None:
        self._current, self._records = file, self._read(file)

    def _end(self) -> None:
        self._current = self._records = None
        self._attempts = 0

    def _read_again(self) -> None:
        """Put the current file back, unless it is gone; one that is there but cannot be read is damaged."""
        file, attempts = self._current, self._attempts + 1
        self._end()
        if file is None:
            return
        self._waiting.appendleft(file)
        # While the store is away this raises, and the attempt does not count.
        found = self._storage.found(file.path)
        if found is None:
            self._waiting.popleft()
            self._seen.pop(file.path, None)
        elif attempts >= _MAX_ATTEMPTS:
            self._waiting.popleft()
            self._refuse(file, self._offset(file.path), ConnectError("The store cannot read the file."))
        else:
            self._attempts = attempts

    def _list(self) -> bool:
        """Look for new and changed files; return whether there are any."""
        now = time.monotonic()
        if now - self._listed_at < self._settings["poll.interval.ms"] / 1000:
            return False
        self._listed_at = now
        listed = {each.path: each for each in self._storage.listed(self._folder) if self._is_ours(each.path)}
        self._seen = {path: each for path, each in self._seen.items() if path in listed}
        self._returned = {path: each for path, each in self._returned.items() if path in listed}
        found = [each for path, each in listed.items() if self._seen.get(path) != each]
        stored = self._context.offsets([{FILE: each.path} for each in found])
        for each, offset in zip(found, stored, strict=True):
            self._seen[each.path] = each
            if offset is None or not _is_complete(offset, each):
                self._waiting.append(each)
            elif not offset.get("damaged"):
                self._finished[each.path] = each
        return bool(self._waiting)

    def _is_ours(self, path: str) -> bool:
        extension = self._format.extension
        done: str = self._settings["processed.dir"].strip("/")
        if not path.endswith((extension, f"{extension}.gz")) or (done and path.startswith(f"{done}/")):
            return False
        return zlib.crc32(path.encode()) % self._count == self._index

    def _offset(self, path: str) -> Offset:
        """Return how far a file was read: by this task, or else as it is stored."""
        return self._returned.get(path) or self._context.offset({FILE: path}) or {}

    def _read(self, file: StoredFile) -> Iterator[SourceRecord]:
        offset, topic = self._offset(file.path), self._topic(file.path)
        done = int(offset.get(RECORDS, 0)) if self._continues(file, offset) else 0
        content = self._storage.fingerprint(file.path, file.size)
        previous: SchemaAndValue | None = None
        error: ConnectError | None = None
        try:
            for each in self._values(file.path, done):
                if isinstance(each, DataError):
                    self._tolerate(file, each, done)
                else:
                    if previous is not None:
                        yield self._record(file, topic, previous, {RECORDS: done, CONTENT: content})
                    previous = each
                done += 1
        except RetriableError:
            raise
        except ConnectError as damage:
            error = damage
        offset = {RECORDS: done, CONTENT: content}
        if error is not None:
            if previous is not None:
                yield self._record(file, topic, previous, offset)
            self._refuse(file, offset, error)
            return
        offset = {**offset, SIZE: file.size, MODIFIED: file.modified}
        if previous is not None:
            yield self._record(file, topic, previous, offset)
        else:
            self._pending.append(({FILE: file.path}, offset))
        self._finished[file.path] = file

    def _continues(self, file: StoredFile, offset: Offset) -> bool:
        """Return whether the file still begins with what was read."""
        content = offset.get(CONTENT)
        if content is None:
            # An offset of an earlier version, or one that a user has set.
            return True
        size = int(str(content).partition(":")[0])
        return size <= file.size and self._storage.fingerprint(file.path, size) == content

    def _tolerate(self, file: StoredFile, error: DataError, done: int) -> None:
        if not self._tolerates:
            raise ConnectError(f"record {done + 1}: {error}") from error
        logger.warning("Record %d of the file %s is skipped: %s", done + 1, file.path, error)

    def _refuse(self, file: StoredFile, offset: Offset, error: ConnectError) -> None:
        """Fail with the name of the file, or leave the file as it is and go on with the next one."""
        if not self._tolerates:
            raise ConnectError(f"{file.path}: {error}") from error
        logger.error("The file %s cannot be read further and is skipped: %s", file.path, error)
        skipped = {**offset, SIZE: file.size, MODIFIED: file.modified, "damaged": True}
        self._pending.append(({FILE: file.path}, skipped))

    def _values(self, path: str, skip: int) -> Iterator[SchemaAndValue | DataError]:
        with ExitStack() as stack:
            file = stack.enter_context(self._storage.reading(path))
            if path.endswith(".gz"):
                file = stack.enter_context(gzip.open(file))
            try:
                yield from self._format.read(file, skip, self._settings)
            except _DAMAGED as error:
                raise ConnectError(f"The content is damaged: {error}") from error

    def _record(
        self, file: StoredFile, topic: str, found: SchemaAndValue, offset: Mapping[str, Any]
    ) -> SourceRecord:
        # The size is stored with the last record only: a file without it is read on.
        return SourceRecord(
            topic=topic,
            value_schema=found.schema,
            value=found.value,
            source_partition={FILE: file.path},
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
        """Move or delete files whose records are all acknowledged, and forget their offsets."""
        action: str = self._settings["after.processing"]
        with self._acknowledging:
            done = [each for each in self._finished if self._unacknowledged.get(each, 0) <= 0]
            for path in done:
                self._unacknowledged.pop(path, None)
        for path in done:
            file = self._finished[path]
            if action != "keep" and not self._was_removed(file, action):
                # It has changed since it was read: the next look reads it on.
                self._seen.pop(path, None)
            elif action != "keep":
                self._seen.pop(path, None)
                self._returned.pop(path, None)
                self._pending.append(({FILE: path}, None))
            del self._finished[path]

    def _was_removed(self, file: StoredFile, action: str) -> bool:
        """Move or delete a file; False if it is another one by now."""
        found = self._storage.found(file.path)
        if found is not None and found != file:
            return False
        if found is None:
            return True
        if action == "delete":
            self._storage.delete(file.path)
        else:
            self._storage.move(file.path, f"{self._settings['processed.dir'].strip('/')}/{file.path}")
        return True


def _is_complete(offset: Offset, file: StoredFile) -> bool:
    """Return whether the stored offset says that this file was read to its end."""
    return offset.get(SIZE) == file.size and offset.get(MODIFIED, file.modified) == file.modified
