"""Raft: the consensus protocol of the metadata quorum as a state machine without I/O.

The driver passes in requests (`step`, `fetch`, ...), responses (`on_response`, `on_failure`), completed log
operations (`appended`, ...) and time (`tick`), and then takes the effects with `take_ready`: state to store,
records to append, requests to send. Time is in milliseconds of a monotonic clock. The driver performs the
effects of each input before the next input, and sends nothing before the state in `Ready.persist` is durable;
otherwise this node could vote twice.

KRaft replicates by pull (KIP-595): a leader never pushes records. Followers fetch from the end of their log,
which tells the leader what is durable there; a record is committed when a majority of voters has it. The
response to a fetch makes the follower append records, truncate its log, or fetch a snapshot.
"""

from __future__ import annotations

from moldau.base.ids import Randomness
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.raft.election import Election
from moldau.raft.local_log import LogView
from moldau.raft.membership import MembershipRequests, VoterChanges
from moldau.raft.quorum_state import QuorumState
from moldau.raft.replication import FollowerReplication, LeaderReplication
from moldau.raft.responses import ResponseHandler
from moldau.raft.settings import RaftSettings
from moldau.raft.states import Candidate, Follower, Resigned, Unattached
from moldau.raft.timeouts import Timeouts
from moldau.raft.types import (
    ElectionState,
    FetchResult,
    FollowerAction,
    OutboundRequest,
    QuorumView,
    Ready,
)
from moldau.raft.voters import VoterHistory, VoterSet

#: Requests that are answered at once, from memory.
ElectionRequest = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | UpdateRaftVoterRequest


class Raft:
    """A member of the quorum.

    `log` must be recovered and durable, and `history` must be the voter history it contains. `stored` is the
    content of `quorum-state`, or `ElectionState()` without that file. `quorum` is for reading: drivers look
    at the epoch, role and leader there, and only the modules of this package change it.
    """

    def __init__(
        self,
        settings: RaftSettings,
        log: LogView,
        stored: ElectionState,
        history: VoterHistory,
        randomness: Randomness,
        now_ms: float,
    ) -> None:
        self.quorum = quorum = QuorumState(settings, log, stored, history, randomness, now_ms)
        self._election = Election(quorum)
        self._changes = VoterChanges(quorum)
        self._membership = MembershipRequests(quorum, self._changes)
        self._leader_replication = LeaderReplication(quorum, self._changes)
        self._replication = FollowerReplication(quorum)
        self._responses = ResponseHandler(quorum, self._election, self._replication, self._changes)
        self._timeouts = Timeouts(quorum, self._election, self._changes, randomness)
        self._stored = stored
        if quorum.is_only_voter and isinstance(quorum.state, Unattached | Follower | Resigned):
            quorum.transition_to_prospective(now_ms)
        elif isinstance(quorum.state, Candidate) and quorum.state.votes.is_won:
            quorum.transition_to_leader(now_ms)
        self._timeouts.poll(now_ms)

    # Requests of other nodes. Errors are part of the response.

    def step(self, request: ElectionRequest, version: int, now_ms: float) -> Message:
        """Handle a request that is answered at once, and return the response."""
        response: Message
        match request:
            case VoteRequest():
                response = self._election.vote(request, version, now_ms)
            case BeginQuorumEpochRequest():
                response = self._election.begin_quorum_epoch(request, version, now_ms)
            case EndQuorumEpochRequest():
                response = self._election.end_quorum_epoch(request, version, now_ms)
            case UpdateRaftVoterRequest():
                return self._membership.update(request, now_ms)
        self._timeouts.poll(now_ms)
        return response

    def fetch(self, request: FetchRequest, version: int, now_ms: float) -> FetchResult:
        """Handle a Fetch; the driver adds the records to the response."""
        result = self._leader_replication.fetch(request, version, now_ms)
        self._timeouts.poll(now_ms)
        return result

    def fetch_snapshot(
        self, request: FetchSnapshotRequest, version: int, now_ms: float
    ) -> tuple[FetchSnapshotResponse, bool]:
        """Handle a FetchSnapshot. Return the response and whether the driver fills in the snapshot's size and
        records; it must still check the position (POSITION_OUT_OF_RANGE)."""
        return self._leader_replication.fetch_snapshot(request, version, now_ms)

    def add_voter(self, request: AddRaftVoterRequest, now_ms: float) -> AddRaftVoterResponse | None:
        """Handle an AddRaftVoter; None if the change has started and a later `Ready` has its response."""
        return self._membership.add(request, now_ms)

    def remove_voter(self, request: RemoveRaftVoterRequest, now_ms: float) -> RemoveRaftVoterResponse | None:
        """Handle a RemoveRaftVoter; None if the change has started and a later `Ready` has its response."""
        return self._membership.remove(request, now_ms)

    # Responses of other nodes.

    def on_response(self, sent: OutboundRequest, response: Message, now_ms: float) -> FollowerAction | None:
        action = None
        if self.quorum.in_flight.expects(sent):
            action = self._responses.handle(sent, response, now_ms)
        self._timeouts.poll(now_ms)
        return action

    def on_failure(self, sent: OutboundRequest, now_ms: float) -> None:
        """Handle a request without a response: not sent, disconnected, or timed out."""
        if self.quorum.in_flight.expects(sent):
            self.quorum.in_flight.fail(sent, now_ms)
            if isinstance(sent.request, ApiVersionsRequest):
                self._changes.on_api_versions(sent.id, None, now_ms)
        self._timeouts.poll(now_ms)

    def leader_exited(self, now_ms: float) -> None:
        """The leader closed the connection and refuses a new one: its process has exited."""
        self._election.leader_exited(now_ms)
        self._timeouts.poll(now_ms)

    # Completed operations on the log.

    def appended(self, now_ms: float, end_offset: int | None = None) -> None:
        """The log is durable up to `end_offset`, or up to its end if that is None."""
        log = self.quorum.log
        log.durable_end = log.view.end.offset if end_offset is None else end_offset
        self._replication.appended(now_ms)
        self._leader_replication.local_log_synced()
        self._timeouts.poll(now_ms)

    def truncated(self, now_ms: float) -> None:
        log = self.quorum.log
        log.durable_end = min(log.durable_end, log.view.end.offset)
        self.quorum.history.truncate(log.view.end.offset)
        self._replication.action_completed(now_ms)
        self._timeouts.poll(now_ms)

    def snapshot_chunk_written(self, now_ms: float) -> None:
        self._replication.snapshot_chunk_written(now_ms)
        self._timeouts.poll(now_ms)

    def snapshot_rejected(self, now_ms: float) -> None:
        """The fetched snapshot is corrupt; fetch it again from the beginning."""
        self._replication.snapshot_rejected(now_ms)
        self._timeouts.poll(now_ms)

    def snapshot_loaded(self, now_ms: float, kraft_version: int, voters: VoterSet | None) -> None:
        """The log was restarted at a fetched snapshot, which contains this voter set."""
        self.quorum.log.durable_end = self.quorum.log.view.end.offset
        self._replication.snapshot_loaded(kraft_version, voters, now_ms)
        self._timeouts.poll(now_ms)

    def voters_changed(self, offset: int, kraft_version: int | None, voters: VoterSet | None) -> None:
        """A KRaftVersionRecord or VotersRecord was appended at `offset`; call it before `appended`."""
        self.quorum.history.add(offset, kraft_version=kraft_version, voters=voters)
        if voters is not None:
            self._changes.voters_appended(offset, voters)

    # Local operations, time and effects.

    def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """Upgrade `kraft.version` from static to dynamic voters, or raise KafkaError."""
        self._changes.upgrade_kraft_version(version, validate_only=validate_only)

    def describe(self, now_ms: float) -> QuorumView | None:
        """Return the replicas' progress for DescribeQuorum; None if this node is not the leader."""
        return self._leader_replication.describe(now_ms)

    def resign(self, now_ms: float) -> None:
        """Resign as the leader and ask the other voters to elect a new one; no effect in other roles."""
        self.quorum.transition_to_resigned(now_ms)
        self._timeouts.poll(now_ms)

    def tick(self, now_ms: float) -> None:
        self._timeouts.poll(now_ms)

    def next_deadline(self) -> float | None:
        """Return when to call `tick` at the latest."""
        return self._timeouts.next_deadline

    def take_ready(self) -> Ready:
        """Take the effects of the inputs so far."""
        election_state = self.quorum.election_state
        persist = None if election_state == self._stored else election_state
        self._stored = election_state
        records, response = self._changes.take()
        return Ready(persist, records, self.quorum.in_flight.take(), response)
