"""Recovery of the metadata log at the start of a node, and the checks whether the node may join the quorum.

A snapshot contains committed records only, so the image starts with the latest one. The records after it may
not be committed: they are scanned for voter changes, which take effect when appended, and replayed when the
high watermark is known.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import iter_batches
from moldau.quorum.batches import read_batches, voter_changes
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.quorum_state_file import FILE_NAME
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import Snapshot, SnapshotId, read_snapshot
from moldau.raft.types import ElectionState, OffsetAndEpoch
from moldau.raft.voters import STATIC, VoterHistory
from moldau.storage.disk.disk import Disk

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveredLog:
    """The state of the log and its snapshots after recovery."""

    #: Has replayed the latest snapshot only.
    loader: MetadataLoader = field(default_factory=MetadataLoader)
    #: The first offset that the loader has not replayed.
    end_offset: int = 0
    #: Includes voter changes that may not be committed.
    history: VoterHistory = field(default_factory=VoterHistory)
    #: The size of the log after the latest snapshot.
    uncovered_bytes: int = 0


def recover(log: MetadataLog, disk: Disk, settings: QuorumSettings) -> RecoveredLog:
    """Load the latest snapshot and scan the records after it. Blocking."""
    recovered = RecoveredLog(history=VoterHistory(settings.static_voters))
    _load_latest_snapshot(recovered, log, disk, settings.folder)
    try:
        _scan_log(recovered, log)
    except (CorruptBatch, DecodeError) as error:
        raise UnusableMetadata(f"The metadata log in {settings.folder} cannot be read: {error}.") from error
    # A killed process may have left unsynced records in the page cache; from now on they count as durable.
    log.flush()
    return recovered


def _load_latest_snapshot(recovered: RecoveredLog, log: MetadataLog, disk: Disk, folder: str) -> None:
    if not log.snapshots:
        if log.start_offset > 0:
            raise UnusableMetadata(
                f"The metadata log in {folder} starts at offset {log.start_offset}, but there is no snapshot "
                "of the records before it. Restore the folder from a backup."
            )
        return
    latest = SnapshotId(*log.snapshots[-1])
    snapshot = read_snapshot(disk, f"{folder}/{latest.file_name}")
    recovered.loader = load_snapshot(snapshot, latest, folder)
    recovered.end_offset = latest.end_offset
    log.last_timestamp = snapshot.last_contained_log_timestamp
    if snapshot.kraft_version > STATIC:
        at = latest.end_offset - 1
        recovered.history.add(at, kraft_version=snapshot.kraft_version, voters=snapshot.voters)
    if latest.epoch > log.end.epoch or latest.end_offset > log.end_offset:
        # The node stopped before it had restarted the log at the leader's snapshot.
        log.restart_at(latest)


def load_snapshot(snapshot: Snapshot, snapshot_id: SnapshotId, folder: str) -> MetadataLoader:
    """Return a loader that has replayed a snapshot."""
    loader = MetadataLoader()
    try:
        loader.restore(snapshot.records, snapshot_id.end_offset - 1, snapshot_id.epoch)
    except InconsistentMetadata as error:
        path = f"{folder}/{snapshot_id.file_name}"
        raise UnusableMetadata(f"The metadata snapshot {path} cannot be used: {error}.") from error
    return loader


def _scan_log(recovered: RecoveredLog, log: MetadataLog) -> None:
    for part in log.parts(recovered.end_offset, log.end_offset):
        view = memoryview(part)
        for position, header in iter_batches(view):
            recovered.uncovered_bytes += header.size_in_bytes
            log.last_timestamp = max(log.last_timestamp, header.max_timestamp)
            if not header.is_control:
                continue
            for batch in read_batches(view[position : position + header.size_in_bytes]):
                for change in voter_changes(batch.control, header.base_offset):
                    recovered.history.add(
                        change.offset, kraft_version=change.kraft_version, voters=change.voters
                    )


def check_voter(settings: QuorumSettings, history: VoterHistory) -> None:
    """Raise UnusableMetadata if the configuration and the voter set do not let this node join the quorum."""
    node_id, folder, voters = settings.node_id, settings.folder, history.voters
    if not voters.voters and not settings.bootstrap_servers:
        raise UnusableMetadata(
            f"The voters of the metadata quorum are unknown: {folder} contains no voter set, and neither "
            "controller.quorum.voters nor controller.quorum.bootstrap.servers is set. Format the folder with "
            "--standalone."
        )
    if not settings.can_vote:
        return
    voter = voters.get(node_id)
    if voter is None:
        if history.kraft_version == STATIC and voters.voters:
            raise UnusableMetadata(
                f"Node {node_id} is not a voter of the metadata quorum in {folder}; the voters are "
                f"{', '.join(map(str, voters.ids))}."
            )
        logger.info("this node is not a voter of the metadata quorum; it joins as an observer")
        return
    if history.kraft_version > STATIC and voter.directory_id != settings.directory_id:
        if len(voters.voters) == 1:
            raise UnusableMetadata(
                f"The metadata log in {folder} belongs to a directory with another directory.id than that in "
                "meta.properties; it was copied from another folder."
            )
        logger.warning(
            "this node is a voter of the metadata quorum with another directory id than that of %s, so it "
            "joins as an observer; remove the old voter and add the new one with kafka-metadata-quorum",
            folder,
        )


def check_quorum_state(
    settings: QuorumSettings, history: VoterHistory, stored: ElectionState | None, end: OffsetAndEpoch
) -> None:
    """Raise UnusableMetadata if a voter has lost its `quorum-state`: it could vote twice in an epoch.

    The file is written before the node acts in an epoch, so its epoch is never below that of the log. For the
    only voter the loss is harmless.
    """
    is_voter = settings.can_vote and history.voters.has(settings.node_id, settings.directory_id)
    if not is_voter or len(history.voters.voters) < 2 or end.offset == 0:
        return
    if stored is None or stored.leader_epoch < end.epoch:
        state = "is missing" if stored is None else f"ends at epoch {stored.leader_epoch}"
        raise UnusableMetadata(
            f"{settings.folder}/{FILE_NAME} {state}, but the metadata log has reached epoch {end.epoch}: "
            "this node may have voted in a later epoch and must not vote twice. Restore the latest backup of "
            "the file, or format the folder again, so that the node joins with a new directory id."
        )
