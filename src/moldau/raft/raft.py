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
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from moldau.protocol.messages.vote import VoteRequest, VoteResponse
from moldau.protocol.schema import Message
from moldau.raft.settings import RaftSettings
from moldau.raft.types import (
    Election,
    FetchAnswer,
    FollowerWork,
    LogView,
    Outgoing,
    QuorumView,
    Ready,
    Role,
)
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import VoterEndpoint, VoterSet


class Raft:
    """`log` must be in order (loaded, whole) and `voters` what it says when this begins. `stored` is the file
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
        raise NotImplementedError

    # What is so.

    @property
    def role(self) -> Role:
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        raise NotImplementedError

    @property
    def leader_id(self) -> int:
        """`NOBODY` when it is not known."""
        raise NotImplementedError

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        raise NotImplementedError

    @property
    def is_voter(self) -> bool:
        raise NotImplementedError

    @property
    def voters(self) -> VoterSet:
        """The latest, committed or not."""
        raise NotImplementedError

    @property
    def kraft_version(self) -> int:
        raise NotImplementedError

    @property
    def high_watermark(self) -> int:
        """-1 while it is not known, which is so again for every new leader until a record of its own epoch is
        committed; what was committed before stays so."""
        raise NotImplementedError

    @property
    def epoch_start_offset(self) -> int:
        """A leader's first offset (its LeaderChange record); -1 for others."""
        raise NotImplementedError

    @property
    def granting_voters(self) -> list[int]:
        """Who voted for this leader, for its LeaderChange record."""
        raise NotImplementedError

    @property
    def epoch_start_voters(self) -> VoterSet | None:
        """A new leader of a dynamic quorum writes KRaftVersion and Voters records behind its LeaderChange
        when the voters are not in the log yet or its own endpoints have changed; None: not needed."""
        raise NotImplementedError

    # Requests of others; errors are in the response, as Kafka has it.

    def vote(self, request: VoteRequest, version: int, now_ms: float) -> VoteResponse:
        raise NotImplementedError

    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest, version: int, now_ms: float
    ) -> BeginQuorumEpochResponse:
        raise NotImplementedError

    def end_quorum_epoch(
        self, request: EndQuorumEpochRequest, version: int, now_ms: float
    ) -> EndQuorumEpochResponse:
        raise NotImplementedError

    def fetch(self, request: FetchRequest, version: int, now_ms: float) -> FetchAnswer:
        raise NotImplementedError

    def check_fetch_snapshot(
        self, request: FetchSnapshotRequest, version: int, now_ms: float
    ) -> tuple[FetchSnapshotResponse, bool]:
        """The response, and whether size and records of the snapshot are to be filled in (the position may
        still be out of range: POSITION_OUT_OF_RANGE)."""
        raise NotImplementedError

    def describe(self, now_ms: float) -> QuorumView | None:
        """None: only the leader knows."""
        raise NotImplementedError

    # Changes of voters. The answer is None when the change is under way; it comes with a later `take_ready`.

    def add_voter(self, request: AddRaftVoterRequest, now_ms: float) -> AddRaftVoterResponse | None:
        raise NotImplementedError

    def remove_voter(self, request: RemoveRaftVoterRequest, now_ms: float) -> RemoveRaftVoterResponse | None:
        raise NotImplementedError

    def update_voter(self, request: UpdateRaftVoterRequest, now_ms: float) -> UpdateRaftVoterResponse:
        raise NotImplementedError

    def upgrade_kraft_version(self, version: int, *, validate_only: bool, now_ms: float) -> None:
        """KafkaError says why not."""
        raise NotImplementedError

    # What comes of our own requests.

    def on_response(self, sent: Outgoing, response: Message, now_ms: float) -> FollowerWork | None:
        raise NotImplementedError

    def on_failure(self, sent: Outgoing, now_ms: float) -> None:
        """No answer: unreachable, the connection broke, or nothing came in time."""
        raise NotImplementedError

    def leader_gone(self, now_ms: float) -> None:
        """The connection to the leader broke and a new one is refused: its process has ended."""
        raise NotImplementedError

    # The log.

    def appended(self, now_ms: float, end_offset: int | None = None) -> None:
        """Everything up to `end_offset` is on disk; None: up to the end of the log."""
        raise NotImplementedError

    def truncated(self, now_ms: float) -> None:
        raise NotImplementedError

    def chunk_stored(self, now_ms: float) -> None:
        raise NotImplementedError

    def snapshot_loaded(self, now_ms: float, kraft_version: int, voters: VoterSet | None) -> None:
        """The log begins and ends at the snapshot that was fetched, which says this of the voters."""
        raise NotImplementedError

    def voters_changed(self, offset: int, kraft_version: int | None, voters: VoterSet | None) -> None:
        """A KRaftVersionRecord or VotersRecord was appended at `offset`; call before `appended`."""
        raise NotImplementedError

    # Own wishes, and time.

    def resign(self, now_ms: float) -> None:
        """A leader stops leading and asks the others to elect; for anybody else nothing happens."""
        raise NotImplementedError

    def tick(self, now_ms: float) -> None:
        raise NotImplementedError

    def next_deadline(self) -> float | None:
        """When `tick` is needed at the latest."""
        raise NotImplementedError

    def take_ready(self) -> Ready:
        raise NotImplementedError
