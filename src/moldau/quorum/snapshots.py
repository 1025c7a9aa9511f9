"""Files of metadata snapshots: `<end offset>-<epoch>.checkpoint` in the folder of the log (KIP-630).

A snapshot contains the state that results from all records before its end offset. Its first batch is a
control batch with the header and, in a dynamic quorum, the voter set; its last batch is the footer, without
which it is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import iter_batches
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.quorum.batches import control_batch, data_batch, read_batches, voter_records
from moldau.quorum.errors import UnusableMetadata
from moldau.raft.voters import DYNAMIC, STATIC, VoterSet
from moldau.storage.disk.disk import Disk

SUFFIX = ".checkpoint"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
#: Files of an interrupted write or deletion, by this server or by Apache Kafka.
_LEFTOVER = re.compile(r"\d{20}-\d{10}\.checkpoint\.(?:part|tmp|deleted).*|\d{20}-\d{10}.*\.part")
#: The size at which a data batch of a snapshot is closed.
BATCH_BYTES = 1 << 20


class SnapshotId(NamedTuple):
    """A snapshot's end offset (exclusive) and the epoch of its last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class Snapshot(NamedTuple):
    """A decoded snapshot."""

    records: list[MetadataRecord]
    last_contained_log_timestamp: int
    kraft_version: int
    #: None in a static quorum.
    voters: VoterSet | None


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """Return the complete snapshots in a folder, oldest first."""
    found = [_NAME.fullmatch(name) for name in disk.listdir(directory)]
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in found if match)


def remove_leftovers(disk: Disk, directory: str) -> None:
    for name in disk.listdir(directory):
        if _LEFTOVER.fullmatch(name):
            disk.remove(f"{directory}/{name}")


def encode_snapshot(
    records: Iterable[MetadataRecord],
    metadata_version: int,
    *,
    epoch: int,
    time_ms: int,
    last_contained_log_timestamp: int,
    voters: VoterSet | None = None,
) -> bytes:
    """Encode a snapshot file; `voters` is the voter set of a dynamic quorum."""
    header: list[Message] = [
        SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_log_timestamp)
    ]
    if voters is not None:
        header += voter_records(DYNAMIC, voters)
    parts = [control_batch(header, 0, epoch, time_ms)]
    offset = len(header)
    for values in _chunks(encode_record(record, metadata_version) for record in records):
        parts.append(data_batch(values, offset, epoch, time_ms))
        offset += len(values)
    parts.append(control_batch([SnapshotFooterRecord(version=0)], offset, epoch, time_ms))
    return b"".join(parts)


def _chunks(values: Iterable[bytes]) -> Iterable[Sequence[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for value in values:
        chunk.append(value)
        size += len(value)
        if size >= BATCH_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def read_snapshot(disk: Disk, path: str) -> Snapshot:
    """Read a snapshot; raise UnusableMetadata if it is incomplete or damaged."""
    data = disk.read_bytes(path)
    try:
        return _parse(data)
    except (CorruptBatch, DecodeError) as error:
        raise UnusableMetadata(
            f"The metadata snapshot {path} is damaged ({error}). Restore it from a backup."
        ) from error


def read_snapshot_time(disk: Disk, path: str) -> int:
    """Return the timestamp of the last record in a snapshot, from its header."""
    file = disk.open(path, read_only=True)
    try:
        _, header = next(iter_batches(file.pread(1 << 16, 0)), (0, None))
        if header is None:
            raise CorruptBatch("the header is missing")
        return _parse_header(bytes(file.pread(header.size_in_bytes, 0)))
    except (CorruptBatch, DecodeError) as error:
        raise UnusableMetadata(f"The metadata snapshot {path} is damaged ({error}).") from error
    finally:
        file.close()


def _parse_header(data: bytes) -> int:
    first = next(read_batches(data), None)
    if first is None or not first.control or not isinstance(first.control[0], SnapshotHeaderRecord):
        raise DecodeError("it does not start with a snapshot header")
    return first.control[0].last_contained_log_timestamp


def _parse(data: bytes) -> Snapshot:
    timestamp = _parse_header(data)
    records: list[MetadataRecord] = []
    kraft_version, voters, complete, size = STATIC, None, False, 0
    for batch in read_batches(data):
        size += batch.header.size_in_bytes
        records += batch.records
        for message in batch.control:
            if isinstance(message, KRaftVersionRecord):
                kraft_version = message.kraft_version
            elif isinstance(message, VotersRecord):
                voters = VoterSet.from_record(message)
            elif isinstance(message, SnapshotFooterRecord):
                complete = True
    if not complete or size != len(data):
        raise DecodeError("the footer is missing")
    return Snapshot(records, timestamp, kraft_version, voters)
