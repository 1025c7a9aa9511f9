"""What comes of the requests a node of the quorum sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
from moldau.protocol.messages.add_raft_voter import AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from moldau.protocol.messages.vote import VoteResponse
from moldau.protocol.schema import Message
from moldau.raft.answering import is_metadata_partition
from moldau.raft.core import Core
from moldau.raft.following import Following
from moldau.raft.learning import Learning
from moldau.raft.states import Candidate, Follower, Prospective, Resigned
from moldau.raft.succession import Succession
from moldau.raft.types import FollowerWork, OffsetAndEpoch, Outgoing
from moldau.raft.voter_changes import VoterChanges
from moldau.raft.voters import VoterEndpoint

_MEMBERSHIP_ANSWERS = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
)


class _NodeEndpoint(Protocol):
    node_id: int
    host: str
    port: int


class Responses:
    def __init__(
        self,
        core: Core,
        learning: Learning,
        succession: Succession,
        following: Following,
        changes: VoterChanges,
    ) -> None:
        self._core = core
        self._learning = learning
        self._succession = succession
        self._following = following
        self._changes = changes

    def take(self, sent: Outgoing, response: Message, now_ms: float) -> FollowerWork | None:
        """The request was on its way until now. An answer that taught nothing is as good as none: a pause,
        lest the same one is asked again at once. Where it changed the role nothing is left to fail."""
        work: FollowerWork | None = None
        match response:
            case FetchResponse() | FetchSnapshotResponse():
                was_useful, work = self._fetched(sent, response, now_ms)
            case VoteResponse():
                was_useful = self._voted(sent, response, now_ms)
            case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
                was_useful = self._told(sent, response, now_ms)
            case UpdateRaftVoterResponse():
                was_useful = self._updated(response, now_ms)
            case AddRaftVoterResponse() | RemoveRaftVoterResponse():
                was_useful = response.error_code in _MEMBERSHIP_ANSWERS
            case ApiVersionsResponse():
                was_useful = self._changes.versions_told(sent.id, response, now_ms)
            case _:
                was_useful = False
        if was_useful:
            self._core.connections.succeeded(sent)
        else:
            self._core.connections.failed(sent, now_ms)
        return work

    def _endpoints(self, leader_id: int, nodes: Sequence[_NodeEndpoint]) -> tuple[VoterEndpoint, ...]:
        return tuple(
            VoterEndpoint(self._core.settings.listener, node.host, node.port)
            for node in nodes
            if node.node_id == leader_id
        )

    # Elections.

    def _voted(self, sent: Outgoing, response: VoteResponse, now_ms: float) -> bool:
        core = self._core
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(core.state, Prospective):
            # An older controller knows no promises.
            core.candidate(now_ms)
            return True
        if response.error_code != ErrorCode.NONE or not is_metadata_partition(response.topics):
            return False
        answer = response.topics[0].partitions[0]
        error = _known(answer.error_code)
        endpoints = self._endpoints(answer.leader_id, response.node_endpoints)
        if self._learning.from_response(error, answer.leader_id, answer.leader_epoch, endpoints, now_ms):
            return False
        if error is not ErrorCode.NONE:
            return False
        state = core.state
        if isinstance(state, Prospective | Candidate):
            state.votes.record(sent.id, answer.vote_granted)
            self._count(state, now_ms)
        return True

    def _count(self, state: Prospective | Candidate, now_ms: float) -> None:
        if isinstance(state, Candidate):
            if state.votes.is_won:
                self._core.lead(now_ms)
        elif state.votes.is_won:
            self._core.candidate(now_ms)
        elif state.votes.is_lost:
            self._succession.promises_refused(now_ms)

    def _told(
        self, sent: Outgoing, response: BeginQuorumEpochResponse | EndQuorumEpochResponse, now_ms: float
    ) -> bool:
        if response.error_code != ErrorCode.NONE or not is_metadata_partition(response.topics):
            return False
        answer = response.topics[0].partitions[0]
        error = _known(answer.error_code)
        endpoints = self._endpoints(answer.leader_id, response.node_endpoints)
        if self._learning.from_response(error, answer.leader_id, answer.leader_epoch, endpoints, now_ms):
            return False
        state = self._core.state
        if isinstance(state, Resigned) and error is ErrorCode.NONE and sent.id in state.unacknowledged:
            state.unacknowledged.remove(sent.id)
        return error is ErrorCode.NONE

    # The log.

    def _fetched(
        self, sent: Outgoing, response: FetchResponse | FetchSnapshotResponse, now_ms: float
    ) -> tuple[bool, FollowerWork | None]:
        if response.error_code != ErrorCode.NONE:
            return False, None
        if isinstance(response, FetchResponse):
            return self._fetched_records(sent, response, now_ms)
        return self._fetched_snapshot(response, now_ms)

    def _fetched_records(
        self, sent: Outgoing, response: FetchResponse, now_ms: float
    ) -> tuple[bool, FollowerWork | None]:
        if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
            return False, None
        answer = response.responses[0].partitions[0]
        leader, error = answer.current_leader, _known(answer.error_code)
        endpoints = self._endpoints(leader.leader_id, response.node_endpoints)
        if self._learning.from_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False, None
        state = self._core.state
        if error is not ErrorCode.NONE or not isinstance(state, Follower) or not self._is_next(sent):
            return False, None
        return self._following.take_records(state, answer, now_ms)

    def _is_next(self, sent: Outgoing) -> bool:
        """The log still ends where it ended when this was asked: the leader may have been asked twice, once
        as a bootstrap server. The same offset is not enough, for the log may have been cut and have grown
        again meanwhile, and what the leader counts on now must not be cut once more."""
        request = sent.request
        if not isinstance(request, FetchRequest) or self._core.is_busy:
            return False
        asked = request.topics[0].partitions[0]
        return OffsetAndEpoch(asked.fetch_offset, asked.last_fetched_epoch) == self._core.log.end

    def _fetched_snapshot(
        self, response: FetchSnapshotResponse, now_ms: float
    ) -> tuple[bool, FollowerWork | None]:
        if (
            len(response.topics) != 1
            or response.topics[0].name != METADATA_TOPIC
            or len(response.topics[0].partitions) != 1
        ):
            return False, None
        answer = response.topics[0].partitions[0]
        leader, error = answer.current_leader, _known(answer.error_code)
        endpoints = self._endpoints(leader.leader_id, response.node_endpoints)
        if self._learning.from_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False, None
        state = self._core.state
        if not isinstance(state, Follower):
            return False, None
        return self._following.take_chunk(state, answer, now_ms)

    # Being a voter.

    def _updated(self, response: UpdateRaftVoterResponse, now_ms: float) -> bool:
        leader, error = response.current_leader, _known(response.error_code)
        endpoints = (
            (VoterEndpoint(self._core.settings.listener, leader.host, leader.port),) if leader.host else ()
        )
        if self._learning.from_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False
        state = self._core.state
        if error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION) or not isinstance(state, Follower):
            return False
        state.has_told_leader = True
        self._following.heard_from_leader(state, now_ms)
        return True


def _known(code: int) -> ErrorCode:
    """A later release may have errors that this one does not know."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
