"""Kafka's Raft as rules: what a node of the metadata quorum does about a message or the passing of time.

Pure and synchronous: nothing here reads a clock, sends or writes. The driver passes in what happened, with
the time in milliseconds of a clock that never goes back, and then takes with `take_ready` what is to be done:
state to store, records to append, requests to send. It runs every input to its end before the next one, and
lets no answer or request leave before the state of `take_ready` is on disk, or this node could vote twice.

Followers pull. A leader never sends records: followers fetch from where their log ends, which tells the
leader what they have on disk; what a majority of the voters has is committed. The answer to a fetch says
whether the logs differ (`Truncate`), are too far apart (`SnapshotChunk`), or goes on (`Append`).
"""

from __future__ import annotations

from moldau.base.ids import Randomness
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from moldau.protocol.messages.vote import VoteRequest, VoteResponse
from moldau.protocol.schema import Message
from moldau.raft.answering import Answering
from moldau.raft.core import Core
from moldau.raft.following import Following
from moldau.raft.leader import Leader
from moldau.raft.learning import Learning
from moldau.raft.membership import Membership
from moldau.raft.passing_time import PassingTime
from moldau.raft.responses import Responses
from moldau.raft.serving import Serving
from moldau.raft.settings import RaftSettings
from moldau.raft.standing import Standing
from moldau.raft.states import Candidate, Follower, Resigned, Unattached
from moldau.raft.succession import Succession
from moldau.raft.types import Election, FetchAnswer, FollowerWork, LogView, Outgoing, Ready
from moldau.raft.voter_changes import VoterChanges
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import VoterSet


class Raft(Standing):
    """`log` must be whole and on disk and `voters` what it says when this begins. `stored` is the file
    `quorum-state`, or `Election()` when there is none."""

    def __init__(
        self,
        settings: RaftSettings,
        log: LogView,
        stored: Election,
        voters: VoterHistory,
        randomness: Randomness,
        now_ms: float,
    ) -> None:
        self._core = core = Core(settings, log, stored, voters, randomness, now_ms)
        self._changes = VoterChanges(core)
        learning = Learning(core)
        self._succession = Succession(core)
        self._following = Following(core)
        self._answering = Answering(core, learning, self._succession)
        self._membership = Membership(core, self._changes)
        self._serving = Serving(core, self._changes)
        self._responses = Responses(core, learning, self._succession, self._following, self._changes)
        self._time = PassingTime(core, self._succession, self._changes, randomness)
        self._stored = stored
        if core.is_only_voter and isinstance(core.state, Unattached | Follower | Resigned):
            core.prospective(now_ms)
        elif isinstance(core.state, Candidate) and core.state.votes.is_won:
            core.lead(now_ms)
        self._time.pass_to(now_ms)

    # Requests of others; errors are in the response, as Kafka has it.

    def vote(self, request: VoteRequest, version: int, now_ms: float) -> VoteResponse:
        response = self._answering.vote(request, version, now_ms)
        self._time.pass_to(now_ms)
        return response

    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest, version: int, now_ms: float
    ) -> BeginQuorumEpochResponse:
        response = self._answering.begin_quorum_epoch(request, version, now_ms)
        self._time.pass_to(now_ms)
        return response

    def end_quorum_epoch(
        self, request: EndQuorumEpochRequest, version: int, now_ms: float
    ) -> EndQuorumEpochResponse:
        response = self._answering.end_quorum_epoch(request, version, now_ms)
        self._time.pass_to(now_ms)
        return response

    def fetch(self, request: FetchRequest, version: int, now_ms: float) -> FetchAnswer:
        answer = self._serving.fetch(request, version, now_ms)
        self._time.pass_to(now_ms)
        return answer

    def check_fetch_snapshot(
        self, request: FetchSnapshotRequest, version: int, now_ms: float
    ) -> tuple[FetchSnapshotResponse, bool]:
        """The response, and whether size and records of the snapshot are to be filled in (the position may
        still be out of range: POSITION_OUT_OF_RANGE)."""
        return self._serving.fetch_snapshot(request, version, now_ms)

    # Changes of voters. The answer is None when the change is under way; it comes with a later `take_ready`.

    def add_voter(self, request: AddRaftVoterRequest, now_ms: float) -> AddRaftVoterResponse | None:
        return self._membership.add(request, now_ms)

    def remove_voter(self, request: RemoveRaftVoterRequest, now_ms: float) -> RemoveRaftVoterResponse | None:
        return self._membership.remove(request, now_ms)

    def update_voter(self, request: UpdateRaftVoterRequest, now_ms: float) -> UpdateRaftVoterResponse:
        return self._membership.update(request, now_ms)

    def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """From static to dynamic voters; KafkaError says why not."""
        self._changes.upgrade(version, validate_only=validate_only)

    # What comes of our own requests.

    def on_response(self, sent: Outgoing, response: Message, now_ms: float) -> FollowerWork | None:
        work = None
        if self._core.connections.expects(sent):
            work = self._responses.take(sent, response, now_ms)
        self._time.pass_to(now_ms)
        return work

    def on_failure(self, sent: Outgoing, now_ms: float) -> None:
        """No answer: unreachable, the connection broke, or nothing came in time."""
        if self._core.connections.expects(sent):
            self._core.connections.failed(sent, now_ms)
            if isinstance(sent.request, ApiVersionsRequest):
                self._changes.versions_told(sent.id, None, now_ms)
        self._time.pass_to(now_ms)

    def leader_gone(self, now_ms: float) -> None:
        """The connection to the leader broke and a new one is refused: its process has ended."""
        self._succession.leader_gone(now_ms)
        self._time.pass_to(now_ms)

    # The log.

    def appended(self, now_ms: float, end_offset: int | None = None) -> None:
        """Everything up to `end_offset` is on disk; None: up to the end of the log."""
        core, state = self._core, self._core.state
        core.durable_end = core.log.end.offset if end_offset is None else end_offset
        self._following.appended(now_ms)
        if isinstance(state, Leader) and state.wrote(core.durable_end):
            self._changes.committed(state)
        self._time.pass_to(now_ms)

    def truncated(self, now_ms: float) -> None:
        core = self._core
        core.durable_end = min(core.durable_end, core.log.end.offset)
        core.history.truncate(core.log.end.offset)
        self._following.work_done(now_ms)
        self._time.pass_to(now_ms)

    def chunk_stored(self, now_ms: float) -> None:
        self._following.chunk_stored(now_ms)
        self._time.pass_to(now_ms)

    def snapshot_refused(self, now_ms: float) -> None:
        """The snapshot that was fetched is damaged; the leader is asked again, from the beginning."""
        self._following.snapshot_refused(now_ms)
        self._time.pass_to(now_ms)

    def snapshot_loaded(self, now_ms: float, kraft_version: int, voters: VoterSet | None) -> None:
        """The log begins and ends at the snapshot that was fetched, which says this of the voters."""
        self._core.durable_end = self._core.log.end.offset
        self._following.snapshot_loaded(kraft_version, voters, now_ms)
        self._time.pass_to(now_ms)

    def voters_changed(self, offset: int, kraft_version: int | None, voters: VoterSet | None) -> None:
        """A KRaftVersionRecord or VotersRecord was appended at `offset`; call before `appended`."""
        self._core.history.add(offset, kraft_version=kraft_version, voters=voters)
        if voters is not None:
            self._changes.appended(offset, voters)

    # Own wishes, and time.

    def resign(self, now_ms: float) -> None:
        """A leader stops leading and asks the others to elect; for anybody else nothing happens."""
        self._core.resigned(now_ms)
        self._time.pass_to(now_ms)

    def tick(self, now_ms: float) -> None:
        self._time.pass_to(now_ms)

    def next_deadline(self) -> float | None:
        """When `tick` is needed at the latest."""
        return self._time.next_deadline

    def take_ready(self) -> Ready:
        election = self._core.election
        persist = None if election == self._stored else election
        self._stored = election
        records, answer = self._changes.take()
        return Ready(persist, records, self._core.connections.take(), answer)
