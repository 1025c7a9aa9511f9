"""Types shared by the Raft modules and their driver: identities, positions in the log, inputs and effects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.protocol.messages.add_raft_voter import AddRaftVoterResponse
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.raft.voters import VoterEndpoint

#: The leader id of an epoch whose leader is unknown.
NO_LEADER = -1
#: The voted id of an epoch in which this node has not voted.
NO_VOTE = -1
#: A high watermark or log end offset that is not known.
UNKNOWN_OFFSET = -1

#: A response to the client that requested a voter change.
VoterChangeResponse = AddRaftVoterResponse | RemoveRaftVoterResponse


class RaftSafetyViolation(Exception):
    """A safety property of Raft is broken, for example two leaders in one epoch or a truncated committed
    record. Continuing could lose data, so the node must stop."""


class ReplicaKey(NamedTuple):
    """A replica of the log: a node and, in a dynamic quorum, the directory that holds its log (KIP-853)."""

    id: int
    directory_id: DirectoryId = ZERO_UUID


class OffsetAndEpoch(NamedTuple):
    """The end of a log or snapshot: its end offset (exclusive) and the epoch of its last record."""

    offset: int
    epoch: int


class Role(Enum):
    """The role of a node in the current epoch. Observers are only ever unattached or followers."""

    UNATTACHED = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()
    FOLLOWER = auto()
    RESIGNED = auto()


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The durable part of a node's state, stored in the file `quorum-state` (Raft §5.2: currentTerm and
    votedFor). Losing it could let the node vote twice in an epoch."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    voted_id: int = NO_VOTE
    voted_directory_id: DirectoryId = ZERO_UUID


class OutboundRequest(NamedTuple):
    """A request to send. `id` is negative for a bootstrap server whose node id is unknown.

    The driver passes this same object back with the response or failure; Raft ignores responses to requests
    that are no longer in flight.
    """

    id: int
    endpoint: VoterEndpoint
    request: Message


class Append(NamedTuple):
    """Append and sync records fetched from the leader, then call `Raft.appended`."""

    records: Buffer
    leader_epoch: int


class Truncate(NamedTuple):
    """Truncate the log, which diverges from the leader's at `end_offset`, then call `Raft.truncated`."""

    end_offset: int


class SnapshotChunk(NamedTuple):
    """Write part of a snapshot fetched from the leader (KIP-630), then call `Raft.snapshot_chunk_written`.

    Position 0 starts a new file and replaces an earlier one. After the last chunk, restart the log at the
    snapshot's end offset and call `Raft.snapshot_loaded` instead.
    """

    snapshot: OffsetAndEpoch
    position: int
    records: Buffer
    is_last: bool


#: The action of a follower's driver after a fetch response.
FollowerAction = Append | Truncate | SnapshotChunk


class FetchResult(NamedTuple):
    """The outcome of a Fetch request.

    `response` is complete except for the records, which the driver reads from `read_from` on unless that is
    None. If `wait` is set, nothing is new for the replica: the driver repeats the call when the log, the high
    watermark or the role changes, and sends the response as it is once `max_wait_ms` has elapsed.
    """

    response: FetchResponse
    read_from: int | None = None
    wait: bool = False


class Ready(NamedTuple):
    """Effects for the driver to perform, in this order.

    1. Store `persist` in `quorum-state`.
    2. Append `records`, control records of a leader, as one batch; call `Raft.voters_changed` and, after the
       sync, `Raft.appended`.
    3. Send `requests`.
    4. Send `voter_change_response` to the client whose voter change is pending.
    """

    persist: ElectionState | None = None
    records: tuple[VotersRecord | KRaftVersionRecord, ...] = ()
    requests: tuple[OutboundRequest, ...] = ()
    voter_change_response: VoterChangeResponse | None = None


class ReplicaView(NamedTuple):
    """A replica as DescribeQuorum reports it. Times are the caller's `now_ms`; None if it never fetched."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...]
    end_offset: int
    last_fetch_ms: float | None
    last_caught_up_ms: float | None


class QuorumView(NamedTuple):
    """The quorum as DescribeQuorum reports it."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: list[ReplicaView]
    observers: list[ReplicaView]
