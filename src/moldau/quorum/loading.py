"""What a node finds in its metadata folder when it starts.

A snapshot holds only what was committed, so the image begins with the latest one. Of the records behind it
nobody knows yet whether they are committed: they are looked through for the quorum's own records, which count
at once, and replayed when the high watermark is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import iter_batches
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.quorum.batches import read_batches
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import Snapshot, SnapshotId, read_snapshot
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import STATIC, VoterSet
from moldau.storage.disk.disk import Disk


class VoterChange(NamedTuple):
    """What a control record says of the voters; None where it says nothing."""

    offset: int
    kraft_version: int | None = None
    voters: VoterSet | None = None


@dataclass(slots=True)
class Loaded:
    """What log and snapshots add up to."""

    #: Has replayed the latest snapshot and nothing else.
    loader: MetadataLoader = field(default_factory=MetadataLoader)
    #: The first offset that the loader has not replayed.
    position: int = 0
    #: Also of records that may not be committed.
    history: VoterHistory = field(default_factory=VoterHistory)
    #: How many bytes lie behind the latest snapshot.
    new_bytes: int = 0


def voter_changes(messages: Sequence[Message], base_offset: int) -> list[VoterChange]:
    """What the records of a control batch say of the voters."""
    found = []
    for offset, message in enumerate(messages, base_offset):
        if isinstance(message, KRaftVersionRecord):
            found.append(VoterChange(offset, kraft_version=message.kraft_version))
        elif isinstance(message, VotersRecord):
            found.append(VoterChange(offset, voters=VoterSet.from_record(message)))
    return found


def load(log: MetadataLog, disk: Disk, settings: QuorumSettings) -> Loaded:
    """Read the latest snapshot, and look through what follows it. Blocking."""
    loaded = Loaded(history=VoterHistory(settings.static_voters))
    _load_snapshot(loaded, log, disk, settings.folder)
    try:
        _look_through(loaded, log)
    except (CorruptBatch, DecodeError) as error:
        raise UnusableMetadata(f"The metadata log in {settings.folder} cannot be read: {error}.") from error
    # A process that was killed may have left in the cache what it had not synced; from now on it counts.
    log.flush()
    return loaded


def _load_snapshot(loaded: Loaded, log: MetadataLog, disk: Disk, folder: str) -> None:
    if not log.snapshots:
        if log.start_offset > 0:
            raise UnusableMetadata(
                f"The metadata log in {folder} begins at offset {log.start_offset}, and there "
                "is no snapshot of what came before. Restore the folder from a copy."
            )
        return
    latest = SnapshotId(*log.snapshots[-1])
    snapshot = read_snapshot(disk, f"{folder}/{latest.file_name}")
    loaded.loader = restored(snapshot, latest, folder)
    loaded.position = latest.end_offset
    log.last_timestamp = snapshot.last_contained_log_timestamp
    if snapshot.kraft_version > STATIC:
        at = latest.end_offset - 1
        loaded.history.add(at, kraft_version=snapshot.kraft_version, voters=snapshot.voters)
    if latest.epoch > log.end.epoch or latest.end_offset > log.end_offset:
        # The node ended before it had begun anew from the leader's snapshot.
        log.begin_at(latest)


def restored(snapshot: Snapshot, snapshot_id: SnapshotId, folder: str) -> MetadataLoader:
    """A loader that has replayed a snapshot."""
    loader = MetadataLoader()
    try:
        loader.restore(snapshot.records, snapshot_id.end_offset - 1, snapshot_id.epoch)
    except InconsistentMetadata as error:
        path = f"{folder}/{snapshot_id.file_name}"
        raise UnusableMetadata(f"The metadata snapshot {path} cannot be used: {error}.") from error
    return loader


def _look_through(loaded: Loaded, log: MetadataLog) -> None:
    for part in log.parts(loaded.position, log.end_offset):
        view = memoryview(part)
        for position, header in iter_batches(view):
            loaded.new_bytes += header.size_in_bytes
            log.last_timestamp = max(log.last_timestamp, header.max_timestamp)
            if not header.is_control:
                continue
            for batch in read_batches(view[position : position + header.size_in_bytes]):
                for change in voter_changes(batch.control, header.base_offset):
                    loaded.history.add(
                        change.offset, kraft_version=change.kraft_version, voters=change.voters
                    )
