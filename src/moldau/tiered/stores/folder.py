"""A store in a folder, with the layout of Apache Kafka's `LocalTieredStorage`.

    <dir>/kafka-tiered-storage/<topic>-<partition>-<topic id>/<start offset, 20 digits>-<segment id>.<kind>

The folder may be on a network file system that all brokers mount. Files get their names when they are
complete and on disk; `.log` is the last one, so that a segment with a `.log` is complete.

The layout has no room for a checksum of the indexes, so it is stored as the custom metadata of the segment.
Segments that Apache Kafka has copied have none.

| config | default | meaning |
|---|---|---|
| `dir` | required | the folder |
| `delete.enable` | `true` | whether segments are really deleted |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from moldau.base.ids import TopicId, format_uuid, parse_uuid
from moldau.tiered.state.segments import PartitionId, RemoteSegment
from moldau.tiered.stores.interface import (
    RemoteIndexesDamaged,
    RemoteSegmentMissing,
    RemoteStoreError,
    SegmentIndexes,
    SegmentSource,
    StoredSegment,
)

#: Apache Kafka's class with this layout, for which `FolderStore` is used.
KAFKA_CLASS = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"

_ROOT = "kafka-tiered-storage"
_LOG = "log"
#: The kinds of the parts of `SegmentIndexes`, in their order.
_KINDS = ("index", "timeindex", "txnindex", "leader_epoch_checkpoint", "snapshot")
_TRANSACTIONS = "txnindex"
_PARTIAL = ".partial"
_CHECKSUM = b"crc32c="
_FOLDER_NAME = re.compile(r"(.+)-(\d+)-([\w-]{22})")
_FILE_NAME = re.compile(r"(\d{20})-([\w-]{22})\.\w+(?:\.partial)?")


class FolderStore:
    def __init__(self, configs: Mapping[str, str]) -> None:
        folder = configs.get("dir")
        if not folder:
            raise ValueError("the folder of the remote store is not set: set rsm.config.dir")
        self._root = Path(folder) / _ROOT
        self._deletes = configs.get("delete.enable", "true").strip().lower() != "false"

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> bytes:
        try:
            indexes = source.indexes()
            folder = self._folder(segment)
            folder.mkdir(parents=True, exist_ok=True)
            for kind, data in zip(_KINDS, indexes, strict=True):
                if data or kind != _TRANSACTIONS:
                    _write(self._path(segment, kind), (data,))
            _write(self._path(segment, _LOG), source.pieces())
            _sync_folder(folder)
        except OSError as error:
            raise RemoteStoreError(f"cannot copy {segment}: {error}") from error
        return _checksum(indexes)

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        path = self._path(segment, _LOG)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                return os.pread(descriptor, size, position)
            finally:
                os.close(descriptor)
        except FileNotFoundError as error:
            raise RemoteSegmentMissing(f"{path} does not exist") from error
        except OSError as error:
            raise RemoteStoreError(f"cannot read {segment}: {error}") from error

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes:
        parts = []
        for kind in _KINDS:
            path = self._path(segment, kind)
            try:
                parts.append(path.read_bytes())
            except FileNotFoundError as error:
                if kind != _TRANSACTIONS:
                    raise RemoteSegmentMissing(f"{path} does not exist") from error
                parts.append(b"")
            except OSError as error:
                raise RemoteStoreError(f"cannot read the indexes of {segment}: {error}") from error
        indexes = SegmentIndexes(*parts)
        expected = segment.custom_metadata or b""
        if expected.startswith(_CHECKSUM) and expected != _checksum(indexes):
            raise RemoteIndexesDamaged(f"the indexes of {segment} are damaged: the checksum does not match")
        return indexes

    def delete(self, segment: RemoteSegment) -> None:
        if not self._deletes:
            return
        try:
            for kind in (_LOG, *_KINDS):
                path = self._path(segment, kind)
                path.unlink(missing_ok=True)
                path.with_name(path.name + _PARTIAL).unlink(missing_ok=True)
        except OSError as error:
            raise RemoteStoreError(f"cannot delete {segment}: {error}") from error
        with suppress(OSError):
            # Removes the folder of the partition with its last segment.
            self._folder(segment).rmdir()

    def segments(self) -> Iterator[StoredSegment]:
        if not self._deletes:
            return
        try:
            for folder in sorted(self._root.glob("*")):
                parts = _FOLDER_NAME.fullmatch(folder.name)
                if parts is not None:
                    partition_id = PartitionId(parts[1], TopicId(parse_uuid(parts[3])), int(parts[2]))
                    names = (_FILE_NAME.fullmatch(name) for name in os.listdir(folder))
                    for number, segment_id in sorted({(each[1], each[2]) for each in names if each}):
                        yield StoredSegment(partition_id, parse_uuid(segment_id), int(number))
        except OSError as error:
            raise RemoteStoreError(f"cannot list {self._root}: {error}") from error

    def close(self) -> None:
        return None

    def _folder(self, segment: RemoteSegment) -> Path:
        topic, topic_id, partition = segment.partition_id
        return self._root / f"{topic}-{partition}-{format_uuid(topic_id)}"

    def _path(self, segment: RemoteSegment, kind: str) -> Path:
        return self._folder(segment) / f"{segment.start_offset:020d}-{format_uuid(segment.id)}.{kind}"


def _checksum(indexes: SegmentIndexes) -> bytes:
    return _CHECKSUM + f"{indexes.checksum:08x}".encode()


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    partial = path.with_name(path.name + _PARTIAL)
    with partial.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
