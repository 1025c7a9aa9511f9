"""The small words the quorum's rules are written in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.protocol.messages.add_raft_voter import AddRaftVoterResponse
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.raft.voters import VoterEndpoint

#: No node.
NOBODY = -1


class ReplicaKey(NamedTuple):
    """Who keeps a copy of the log: a node and, in a dynamic quorum, the directory it lies in."""

    id: int
    directory_id: DirectoryId = ZERO_UUID


class OffsetAndEpoch(NamedTuple):
    """An end of a log or of a snapshot: the first offset that is not in it, the epoch of the last record."""

    offset: int
    epoch: int


class Role(Enum):
    """`RESIGNED`: led until now, and waits for somebody else. Whoever does not vote is an unattached node or
    a follower, and never anything else."""

    UNATTACHED = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()
    FOLLOWER = auto()
    RESIGNED = auto()


@dataclass(frozen=True, slots=True)
class Election:
    """What a node must remember over a restart, lest it votes twice (the file `quorum-state`)."""

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: DirectoryId = ZERO_UUID


class LogView(Protocol):
    """What the rules must know of the log, from memory. Everything appended counts, synced or not."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends; of an empty log the latest snapshot, or (0, 0)."""
        ...

    @property
    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Complete snapshots, oldest first."""
        ...

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the largest epoch that is not above `epoch` ends; that epoch and that offset."""
        ...


class Outgoing(NamedTuple):
    """A request to send. `id` is negative for a bootstrap server whose id is not known. What comes of it is
    told with this very object, so that answers nobody waits for any more are recognised."""

    id: int
    endpoint: VoterEndpoint
    request: Message


class Append(NamedTuple):
    """What a leader sent: append it, bring it to disk, then call `Raft.appended`."""

    records: Buffer
    leader_epoch: int


class Truncate(NamedTuple):
    """The log differs from the leader's from `end_offset` on: cut it there, then call `Raft.truncated`."""

    end_offset: int


class SnapshotChunk(NamedTuple):
    """A part of the leader's snapshot; what comes next was removed from its log. Position 0 begins a new
    file, whatever was there. Write it, then call `Raft.chunk_stored`; after the last one begin the log anew
    from the snapshot and call `Raft.snapshot_loaded` instead."""

    snapshot: OffsetAndEpoch
    position: int
    records: Buffer
    is_last: bool


FollowerWork = Append | Truncate | SnapshotChunk


class FetchAnswer(NamedTuple):
    """`response` is complete but for records: those from `read_from` on belong into it, if it is not None.
    `wait`: there is nothing new; ask again when the log, the high watermark or the role has changed, and send
    the response as it is when the request's `max_wait_ms` are over."""

    response: FetchResponse
    read_from: int | None = None
    wait: bool = False


class Ready(NamedTuple):
    """What the driver must do, in this order: store `persist`; append `records` (control records of a leader,
    one batch; then `Raft.voters_changed` and, synced, `Raft.appended`); send `requests`; give `answer` to
    whoever asked for the change of voters that is under way."""

    persist: Election | None = None
    records: tuple[VotersRecord | KRaftVersionRecord, ...] = ()
    requests: tuple[Outgoing, ...] = ()
    answer: AddRaftVoterResponse | RemoveRaftVoterResponse | None = None


class ReplicaView(NamedTuple):
    """A replica as its leader sees it. Times are those that were passed in; None: never."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...]
    end_offset: int
    last_fetch_ms: float | None
    last_caught_up_ms: float | None


class QuorumView(NamedTuple):
    """What DescribeQuorum tells."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: list[ReplicaView]
    observers: list[ReplicaView]
