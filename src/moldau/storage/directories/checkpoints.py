"""The checkpoint files of a data directory, with one offset for each of its partitions.

A checkpoint is a version line, a line with the number of entries, and one line `topic partition offset`
for each; it is replaced atomically, so a crash leaves the old file or the new one. Every data directory has
four:

- recovery-point-offset-checkpoint: everything before it is on disk; recovery starts there.
- log-start-offset-checkpoint: logs that start inside their first segment (after DeleteRecords).
- replication-offset-checkpoint: high watermarks.
- cleaner-offset-checkpoint: everything before it has been compacted.

`.kafka_cleanshutdown` exists beside them only while the node is down after a clean shutdown.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping

from moldau.base.ids import TopicPartition
from moldau.storage.disk.disk import Disk

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_VERSION = 0


class CheckpointError(ValueError):
    """A malformed checkpoint file."""


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [f"{_VERSION}\n{len(offsets)}\n"]
    lines.extend(f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items())
    return "".join(lines).encode("utf-8")


def parse_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    """Parse a checkpoint file; an empty file, as Apache Kafka creates it, has no offsets."""
    try:
        lines = data.decode("utf-8").splitlines()
        if len(lines) < 2:
            return {}
        version, expected = int(lines[0]), int(lines[1])
        offsets = dict(map(_parse_entry, lines[2:]))
    except ValueError as error:
        raise CheckpointError(f"malformed line in checkpoint file {path}: {error}") from error
    if version != _VERSION:
        raise CheckpointError(f"unknown version {version} in checkpoint file {path}, expected {_VERSION}")
    if len(lines) - 2 != expected:
        raise CheckpointError(
            f"expected {expected} entries in checkpoint file {path}, but found {len(lines) - 2}"
        )
    return offsets


def _parse_entry(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split()
    return TopicPartition(topic, int(partition)), int(offset)


class OffsetCheckpoint:
    """One checkpoint file of one data directory. Blocking: reads and syncs."""

    def __init__(self, disk: Disk, directory: str, name: str) -> None:
        self._disk = disk
        self.path = posixpath.join(directory, name)

    def read(self) -> dict[TopicPartition, int]:
        """Read the offsets, none without a file; `CheckpointError` if it is damaged."""
        if not self._disk.exists(self.path):
            return {}
        return parse_offsets(self._disk.read_bytes(self.path), self.path)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._disk.write_atomic(self.path, format_offsets(offsets))


class CleanShutdownFile:
    """The marker of a clean shutdown, with the broker epoch of the node that wrote it."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self.path = posixpath.join(directory, CLEAN_SHUTDOWN_FILE)

    def exists(self) -> bool:
        return self._disk.exists(self.path)

    def read_broker_epoch(self) -> int | None:
        """The broker epoch at the last clean shutdown; None if there is none or it cannot be read."""
        if not self._disk.exists(self.path):
            return None
        try:
            content = json.loads(self._disk.read_bytes(self.path))
        except ValueError:
            return None
        epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
        return epoch if isinstance(epoch, int) else None

    def write(self, broker_epoch: int) -> None:
        content = {"version": 0, "brokerEpoch": broker_epoch}
        self._disk.write_atomic(self.path, json.dumps(content, separators=(",", ":")).encode("ascii"))

    def remove(self) -> None:
        """Remove the file durably: after a power cut it would hide an unclean shutdown."""
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
            self._disk.sync_dir(posixpath.dirname(self.path))
