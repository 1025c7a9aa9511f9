"""Handling of responses to the requests that a quorum member sent."""

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
from moldau.raft.election import Election, is_metadata_partition
from moldau.raft.membership import VoterChanges
from moldau.raft.quorum_state import QuorumState
from moldau.raft.replication import FollowerReplication
from moldau.raft.states import Follower, Prospective, Resigned
from moldau.raft.types import FollowerAction, OffsetAndEpoch, OutboundRequest
from moldau.raft.voters import VoterEndpoint

_EXPECTED_MEMBERSHIP_ERRORS = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
)


class _NodeEndpoint(Protocol):
    node_id: int
    host: str
    port: int


class ResponseHandler:
    def __init__(
        self,
        quorum: QuorumState,
        election: Election,
        replication: FollowerReplication,
        changes: VoterChanges,
    ) -> None:
        self._quorum = quorum
        self._election = election
        self._replication = replication
        self._changes = changes

    def handle(self, sent: OutboundRequest, response: Message, now_ms: float) -> FollowerAction | None:
        """Handle the response to a request in flight; return the action for the driver, if any.

        A response that cannot be used counts as a failure, so that the node is not asked again before the
        retry backoff. If the response changed the role, the request is no longer in flight and cannot fail.
        """
        action: FollowerAction | None = None
        match response:
            case FetchResponse() | FetchSnapshotResponse():
                is_usable, action = self._on_fetch(sent, response, now_ms)
            case VoteResponse():
                is_usable = self._on_vote(sent, response, now_ms)
            case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
                is_usable = self._on_quorum_epoch(sent, response, now_ms)
            case UpdateRaftVoterResponse():
                is_usable = self._on_update_voter(response, now_ms)
            case AddRaftVoterResponse() | RemoveRaftVoterResponse():
                is_usable = response.error_code in _EXPECTED_MEMBERSHIP_ERRORS
            case ApiVersionsResponse():
                is_usable = self._changes.on_api_versions(sent.id, response, now_ms)
            case _:
                is_usable = False
        if is_usable:
            self._quorum.in_flight.complete(sent)
        else:
            self._quorum.in_flight.fail(sent, now_ms)
        return action

    def _endpoints(self, leader_id: int, nodes: Sequence[_NodeEndpoint]) -> tuple[VoterEndpoint, ...]:
        return tuple(
            VoterEndpoint(self._quorum.settings.listener, node.host, node.port)
            for node in nodes
            if node.node_id == leader_id
        )

    # Vote, BeginQuorumEpoch, EndQuorumEpoch.

    def _on_vote(self, sent: OutboundRequest, response: VoteResponse, now_ms: float) -> bool:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(
            self._quorum.state, Prospective
        ):
            # An older controller does not support pre-votes.
            self._quorum.transition_to_candidate(now_ms)
            return True
        if response.error_code != ErrorCode.NONE or not is_metadata_partition(response.topics):
            return False
        partition = response.topics[0].partitions[0]
        error = _error_code(partition.error_code)
        endpoints = self._endpoints(partition.leader_id, response.node_endpoints)
        if self._election.observe_response(
            error, partition.leader_id, partition.leader_epoch, endpoints, now_ms
        ):
            return False
        if error is not ErrorCode.NONE:
            return False
        self._election.count_vote(sent.id, partition.vote_granted, now_ms)
        return True

    def _on_quorum_epoch(
        self,
        sent: OutboundRequest,
        response: BeginQuorumEpochResponse | EndQuorumEpochResponse,
        now_ms: float,
    ) -> bool:
        if response.error_code != ErrorCode.NONE or not is_metadata_partition(response.topics):
            return False
        partition = response.topics[0].partitions[0]
        error = _error_code(partition.error_code)
        endpoints = self._endpoints(partition.leader_id, response.node_endpoints)
        if self._election.observe_response(
            error, partition.leader_id, partition.leader_epoch, endpoints, now_ms
        ):
            return False
        state = self._quorum.state
        if isinstance(state, Resigned) and error is ErrorCode.NONE and sent.id in state.unacknowledged:
            state.unacknowledged.remove(sent.id)
        return error is ErrorCode.NONE

    # Fetch and FetchSnapshot.

    def _on_fetch(
        self, sent: OutboundRequest, response: FetchResponse | FetchSnapshotResponse, now_ms: float
    ) -> tuple[bool, FollowerAction | None]:
        if response.error_code != ErrorCode.NONE:
            return False, None
        if isinstance(response, FetchResponse):
            return self._on_records(sent, response, now_ms)
        return self._on_snapshot(response, now_ms)

    def _on_records(
        self, sent: OutboundRequest, response: FetchResponse, now_ms: float
    ) -> tuple[bool, FollowerAction | None]:
        if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
            return False, None
        partition = response.responses[0].partitions[0]
        leader, error = partition.current_leader, _error_code(partition.error_code)
        endpoints = self._endpoints(leader.leader_id, response.node_endpoints)
        if self._election.observe_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False, None
        state = self._quorum.state
        if error is not ErrorCode.NONE or not isinstance(state, Follower) or not self._is_at_log_end(sent):
            return False, None
        return self._replication.on_fetch(state, partition, now_ms)

    def _is_at_log_end(self, sent: OutboundRequest) -> bool:
        """Whether the log still ends where it did when the request was sent.

        A second fetch to the leader may have been in flight, sent to it as a bootstrap server. The offset
        alone does not tell: the log may have been truncated and have grown again, and records that the leader
        counts as durable here must not be truncated.
        """
        request = sent.request
        if not isinstance(request, FetchRequest) or self._quorum.log.has_pending_write:
            return False
        fetched = request.topics[0].partitions[0]
        return OffsetAndEpoch(fetched.fetch_offset, fetched.last_fetched_epoch) == self._quorum.log.view.end

    def _on_snapshot(
        self, response: FetchSnapshotResponse, now_ms: float
    ) -> tuple[bool, FollowerAction | None]:
        if (
            len(response.topics) != 1
            or response.topics[0].name != METADATA_TOPIC
            or len(response.topics[0].partitions) != 1
        ):
            return False, None
        partition = response.topics[0].partitions[0]
        leader, error = partition.current_leader, _error_code(partition.error_code)
        endpoints = self._endpoints(leader.leader_id, response.node_endpoints)
        if self._election.observe_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False, None
        state = self._quorum.state
        if not isinstance(state, Follower):
            return False, None
        return self._replication.on_fetch_snapshot(state, partition, now_ms)

    # UpdateRaftVoter.

    def _on_update_voter(self, response: UpdateRaftVoterResponse, now_ms: float) -> bool:
        leader, error = response.current_leader, _error_code(response.error_code)
        endpoints = (
            (VoterEndpoint(self._quorum.settings.listener, leader.host, leader.port),) if leader.host else ()
        )
        if self._election.observe_response(error, leader.leader_id, leader.leader_epoch, endpoints, now_ms):
            return False
        state = self._quorum.state
        if error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION) or not isinstance(state, Follower):
            return False
        state.has_updated_leader = True
        self._replication.record_contact(state, now_ms)
        return True


def _error_code(code: int) -> ErrorCode:
    """Map error codes of later Kafka releases to UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
