"""The metadata log on disk: `__cluster_metadata-0`, its snapshots, and the file that remembers the epoch.

`open` and `load` block; they run in the pool, once. Loading replays the latest snapshot and every record
behind it. `lead` begins an epoch. From then on the event loop appends groups of batches, and a thread of
the pool brings each to disk before it counts as committed.

Invariants:

- the epoch grows with every start and is on disk (`quorum-state`) before anything is written in it;
- a group has one timestamp, later than that of the group before it (`damage` relies on it);
- the log begins at or before the end of the oldest snapshot that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from moldau.base.clock import Clock
from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.quorum.batches import Batch, control_batch, data_batch, leader_change, read_batches, voter_records
from moldau.quorum.damage import check_log
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.quorum_state import FILE_NAME as QUORUM_STATE
from moldau.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import (
    SnapshotId,
    list_snapshots,
    read_snapshot,
    remove_leftovers,
)
from moldau.raft.voters import STATIC, Voter, VoterSet
from moldau.storage.disk import Disk, DiskFull, SyncFailed
from moldau.storage.log import Log, Origin

_READ_BYTES = 4 << 20


@dataclass(slots=True)
class Loaded:
    """What a log and its snapshots add up to."""

    loader: MetadataLoader
    kraft_version: int = STATIC
    voters: VoterSet = field(default_factory=VoterSet)
    #: The voters are only in the snapshot that `format` wrote, not yet in the log.
    voters_from_format: bool = False
    #: The epoch and the time of the last record, and how many bytes lie behind the latest snapshot.
    epoch: int = 0
    last_timestamp: int = 0
    new_bytes: int = 0


class MetadataLog:
    def __init__(self, log: Log, disk: Disk, clock: Clock, settings: QuorumSettings) -> None:
        self.log = log
        self.epoch = -1
        self._disk = disk
        self._clock = clock
        self._settings = settings
        self._last_timestamp = 0

    @classmethod
    def open(cls, disk: Disk, clock: Clock, settings: QuorumSettings) -> MetadataLog:
        """Open the log after whatever happened; UnusableMetadata if it cannot be trusted."""
        check_log(disk, settings.folder)
        log = Log.open(
            disk,
            clock,
            settings.folder,
            TopicPartition(METADATA_TOPIC, 0),
            METADATA_TOPIC_ID,
            settings.log_config(),
        )
        return cls(log, disk, clock, settings)

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    def load(self) -> Loaded:
        """Replay the latest snapshot and what follows it."""
        loaded = Loaded(MetadataLoader())
        start = self._load_snapshot(loaded)
        try:
            for batch in self._batches(start):
                self._load_batch(loaded, batch, start)
        except (CorruptBatch, DecodeError, InconsistentMetadata) as error:
            raise UnusableMetadata(
                f"The metadata log in {self._settings.folder} cannot be read: {error}."
            ) from error
        if loaded.kraft_version == STATIC:
            loaded.voters = VoterSet.of(Voter(node_id) for node_id in self._settings.static_voters)
        self._last_timestamp = loaded.last_timestamp
        return loaded

    def _load_snapshot(self, loaded: Loaded) -> int:
        """Read the latest snapshot and give the offset the log goes on from."""
        folder = self._settings.folder
        remove_leftovers(self._disk, folder)
        snapshots = [
            each
            for each in list_snapshots(self._disk, folder)
            if each.end_offset >= self.log.log_start_offset
        ]
        if not snapshots:
            if self.log.log_start_offset > 0:
                raise UnusableMetadata(
                    f"The metadata log in {folder} begins at offset {self.log.log_start_offset}, and there "
                    "is no snapshot of what came before. Restore the folder from a copy."
                )
            return 0
        latest = snapshots[-1]
        path = f"{folder}/{latest.file_name}"
        snapshot = read_snapshot(self._disk, path)
        try:
            loaded.loader.restore(snapshot.records, latest.end_offset - 1, latest.epoch)
        except InconsistentMetadata as error:
            raise UnusableMetadata(f"The metadata snapshot {path} cannot be used: {error}.") from error
        loaded.epoch = latest.epoch
        loaded.last_timestamp = snapshot.last_contained_log_timestamp
        loaded.kraft_version = snapshot.kraft_version
        if snapshot.voters is not None:
            loaded.voters = snapshot.voters
            loaded.voters_from_format = latest.end_offset == 0
        if latest.end_offset > self.log.log_end_offset:
            self.log.truncate_fully_and_start_at(latest.end_offset)
        return latest.end_offset

    def _batches(self, start: int) -> Iterator[Batch]:
        offset, end = start, self.log.log_end_offset
        while offset < end:
            result = self.log.read(offset, _READ_BYTES, upper_bound=end, blocking=True)
            if result is None or not result.parts:
                raise CorruptBatch(f"nothing can be read at offset {offset}, before its end at {end}")
            for part in result.parts:
                yield from read_batches(part)
            offset = result.next_offset

    def _load_batch(self, loaded: Loaded, batch: Batch, start: int) -> None:
        header = batch.header
        loaded.new_bytes += header.size_in_bytes
        loaded.epoch = max(loaded.epoch, header.partition_leader_epoch)
        loaded.last_timestamp = max(loaded.last_timestamp, header.max_timestamp)
        for message in batch.control:
            if isinstance(message, KRaftVersionRecord):
                loaded.kraft_version = message.kraft_version
            elif isinstance(message, VotersRecord):
                loaded.voters = VoterSet.from_record(message)
                loaded.voters_from_format = False
        if batch.control:
            loaded.loader.advance(header.last_offset, header.partition_leader_epoch)
            return
        # A snapshot may end inside a batch.
        known = max(0, start - header.base_offset)
        first = header.base_offset + known
        loaded.loader.replay(batch.records[known:], first, header.partition_leader_epoch)

    def lead(self, loaded: Loaded) -> int:
        """Begin an epoch as the only voter; gives the bytes written. Blocking."""
        voter = self._check_voters(loaded)
        path = f"{self._settings.folder}/{QUORUM_STATE}"
        before = read_quorum_state(self._disk, path) or QuorumState()
        self.epoch = max(before.leader_epoch, self.log.leader_epochs.latest, loaded.epoch) + 1
        state = QuorumState(leader_id=self._settings.node_id, leader_epoch=self.epoch)
        write_quorum_state(self._disk, path, state, kraft_version=loaded.kraft_version, voters=loaded.voters)
        messages: list[Message] = [leader_change(self._settings.node_id, loaded.voters.ids)]
        local = self._settings.local_voter
        if loaded.kraft_version > STATIC and (
            loaded.voters_from_format or voter.endpoints != local.endpoints
        ):
            loaded.voters = loaded.voters.with_voter(local)
            messages += voter_records(loaded.kraft_version, loaded.voters)
        batch = control_batch(messages, self.end_offset, self.epoch, self._next_timestamp())
        self.log.append_as_leader(batch, self.epoch, origin=Origin.RAFT_LEADER)
        self.flush()
        self.committed(self.end_offset)
        loaded.loader.advance(self.end_offset - 1, self.epoch)
        return len(batch)

    def _check_voters(self, loaded: Loaded) -> Voter:
        """This node must be the one and only voter."""
        node_id, folder = self._settings.node_id, self._settings.folder
        if not loaded.voters.voters:
            raise UnusableMetadata(
                f"Nothing says who votes in the metadata quorum: {folder} has no voters and "
                "controller.quorum.voters is not set. Format the folder with --standalone."
            )
        voter = loaded.voters.get(node_id)
        if voter is None:
            raise UnusableMetadata(
                f"Node {node_id} is not a voter of the metadata quorum in {folder}; its voters are "
                f"{', '.join(map(str, loaded.voters.ids))}."
            )
        if len(loaded.voters.voters) > 1:
            raise UnusableMetadata(
                f"The metadata quorum in {folder} has the voters {', '.join(map(str, loaded.voters.ids))}; "
                "this release runs a quorum of one node only."
            )
        if loaded.kraft_version > STATIC and voter.directory_id != self._settings.directory_id:
            raise UnusableMetadata(
                f"The metadata log in {folder} belongs to another directory than its meta.properties says "
                "(directory.id); it was copied from somewhere else."
            )
        return voter

    def append(self, batches: Sequence[Sequence[bytes]]) -> int:
        """Append framed records, each inner sequence as one batch, all or nothing; gives the size written."""
        timestamp = self._next_timestamp()
        offset = self.end_offset
        group = bytearray()
        for values in batches:
            group += data_batch(values, offset, self.epoch, timestamp)
            offset += len(values)
        self.log.append_as_leader(group, self.epoch, origin=Origin.RAFT_LEADER)
        return len(group)

    def flush(self) -> None:
        """Bring everything appended to disk. Blocking.

        A sync that failed cannot be tried again. But after `DiskFull` the caller cuts off all that was not
        synced before (`cut`), and what takes its place is written anew.
        """
        try:
            self.log.flush()
        except SyncFailed as error:
            if error.full:
                raise DiskFull(str(error)) from error
            raise

    def committed(self, end_offset: int) -> None:
        """Everything before `end_offset` is on disk, and with a single voter that is committed."""
        self.log.high_watermark = end_offset

    def cut(self, offset: int) -> None:
        """Remove what could not be brought to disk."""
        self.log.truncate_to(offset)

    def close(self) -> None:
        self.log.close()

    def _next_timestamp(self) -> int:
        self._last_timestamp = max(self._clock.time_ms(), self._last_timestamp + 1)
        return self._last_timestamp

    @property
    def last_timestamp(self) -> int:
        return self._last_timestamp

    def start_at(self, snapshot: SnapshotId) -> None:
        """Everything before a snapshot may go."""
        self.log.delete_records_before(snapshot.end_offset)
        self.log.delete_old_segments(self._clock.time_ms())
