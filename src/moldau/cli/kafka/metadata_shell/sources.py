"""The sources of the metadata shell: a file, the folder of a node, or running controllers.

A file is a single snapshot or segment. A folder is loaded like a node loads it: the latest snapshot, then the
records of the log after it; the node may be running. From controllers, each access to the tree fetches the
records committed since the previous one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from moldau.base.ids import METADATA_TOPIC
from moldau.cli.kafka.dump_log.files import SegmentFile
from moldau.cli.kafka.metadata_shell.tree import Directory, Root
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.metadata_log import MetadataReader, SnapshotData
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.quorum.batches import read_batches
from moldau.quorum.snapshots import SUFFIX, list_snapshots
from moldau.storage.disk.disk import PosixDisk


class Metadata:
    """The metadata image that results from the records replayed so far."""

    def __init__(self) -> None:
        self._loader = MetadataLoader()
        self._time_ms = -1

    def tree(self) -> Directory:
        _, image = self._loader.publish()
        return Root(image, self._time_ms).directory()

    def replay(self, data: memoryview | bytes, what: str, start: int = 0) -> None:
        """Replay the batches of a log from offset `start`."""
        try:
            for batch in read_batches(data):
                if batch.records and batch.header.last_offset >= start:
                    self._loader.replay(
                        batch.records, batch.header.base_offset, batch.header.partition_leader_epoch
                    )
                    self._time_ms = batch.header.max_timestamp
        except (CorruptBatch, DecodeError) as error:
            raise ToolError(f"{what} is damaged: {error}") from error
        except InconsistentMetadata as error:
            raise ToolError(
                f"{what} cannot be read alone: {error}. Use --directory to also read the records before it."
            ) from error

    def restore(self, data: memoryview | bytes, what: str, end_offset: int, epoch: int) -> None:
        """Replace the metadata with that of a snapshot."""
        self._loader = MetadataLoader()
        self.replay(data, what)
        self._loader.advance(end_offset - 1, epoch)


def from_file(path: str) -> Metadata:
    metadata = Metadata()
    metadata.replay(SegmentFile(path).view(), path)
    return metadata


def from_directory(path: str) -> Metadata:
    """Load the folder of the metadata log, or the log directory that contains it."""
    inside = os.path.join(path, f"{METADATA_TOPIC}-0")
    folder = inside if os.path.isdir(inside) else path
    try:
        snapshots = list_snapshots(PosixDisk(), folder)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".log"))
    except OSError as error:
        raise ToolError(f"{folder}: {error.strerror}") from error
    if not snapshots and not names:
        raise ToolError(f"{folder} has neither a metadata log nor a snapshot (*{SUFFIX}) of it")
    metadata, start = Metadata(), 0
    if snapshots:
        latest = snapshots[-1]
        file = os.path.join(folder, latest.file_name)
        metadata.restore(SegmentFile(file).view(), file, latest.end_offset, latest.epoch)
        start = latest.end_offset
    for name in _segments_from(names, start):
        file = os.path.join(folder, name)
        metadata.replay(SegmentFile(file).view(), file, start)
    return metadata


def _segments_from(names: Sequence[str], start: int) -> Iterable[str]:
    """Return the segments that may contain records at or after `start`."""
    bases = [int(name.partition(".")[0]) for name in names]
    first = sum(base <= start for base in bases) - 1
    return names[max(first, 0) :]


class FromControllers:
    """The committed metadata of the active controller."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        self._reader = MetadataReader(admin.client)
        self._metadata = Metadata()

    def tree(self) -> Directory:
        for part in self._admin.run(self._reader.read_on()):
            if isinstance(part, SnapshotData):
                self._metadata.restore(part.data, "The snapshot", part.end_offset, part.epoch)
            else:
                self._metadata.replay(part, "The metadata log")
        return self._metadata.tree()
