"""Where the metadata shell gets the metadata from: a file, the folder of a node, or the controllers.

A file is a snapshot or a segment of the log, read alone. A folder is read as a node would: its latest
snapshot, and what the log has behind it; that works on a running node too. Controllers are followed: every
look fetches what was committed since.
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
    """What the records so far add up to."""

    def __init__(self) -> None:
        self._loader = MetadataLoader()
        self._time_ms = -1

    def tree(self) -> Directory:
        _, image = self._loader.publish()
        return Root(image, self._time_ms).directory()

    def replay(self, data: memoryview | bytes, what: str, start: int = 0) -> None:
        """Take the batches of a log from offset `start` on."""
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
                f"{what} cannot be read alone: {error}. With --directory what came before is read too."
            ) from error

    def restore(self, data: memoryview | bytes, what: str, end_offset: int, epoch: int) -> None:
        """Begin anew with a snapshot."""
        self._loader = MetadataLoader()
        self.replay(data, what)
        self._loader.advance(end_offset - 1, epoch)


def from_file(path: str) -> Metadata:
    metadata = Metadata()
    metadata.replay(SegmentFile(path).view(), path)
    return metadata


def from_directory(path: str) -> Metadata:
    """The folder of the metadata log, or the log directory it is in."""
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
    for name in _from(names, start):
        file = os.path.join(folder, name)
        metadata.replay(SegmentFile(file).view(), file, start)
    return metadata


def _from(names: Sequence[str], start: int) -> Iterable[str]:
    """The segments that may hold records from `start` on."""
    bases = [int(name.partition(".")[0]) for name in names]
    first = sum(base <= start for base in bases) - 1
    return names[max(first, 0) :]


class FromControllers:
    """The metadata as the active controller has committed it."""

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
