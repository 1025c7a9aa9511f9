"""Elections: Vote, BeginQuorumEpoch and EndQuorumEpoch requests, observed leader epochs, resignation.

Each response carries the epoch and leader that this node knows, and the leader's endpoint, so that a sender
with outdated information finds the leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC, ZERO_UUID, DirectoryId
from moldau.protocol.messages import begin_quorum_epoch as begin_api
from moldau.protocol.messages import end_quorum_epoch as end_api
from moldau.protocol.messages import vote as vote_api
from moldau.raft.quorum_state import QuorumState, is_vote_for
from moldau.raft.states import (
    RANK_DELAY_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    State,
    Unattached,
    UnavailableLeader,
)
from moldau.raft.types import NO_LEADER, OffsetAndEpoch, RaftSafetyViolation, ReplicaKey
from moldau.raft.voters import VoterEndpoint

#: Errors of a request that was sent to a node other than the current leader.
_WRONG_LEADER = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class _Partition(Protocol):
    partition_index: int


class _Topic(Protocol):
    topic_name: str

    @property
    def partitions(self) -> Sequence[_Partition]: ...


class Election:
    """Handles election requests, and decides how this node takes part in elections."""

    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    # Vote.

    def vote(self, request: vote_api.VoteRequest, version: int, now_ms: float) -> vote_api.VoteResponse:
        if not self._is_own_cluster(request.cluster_id):
            return vote_api.VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return vote_api.VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error, granted = self._vote(request.voter_id, partition, now_ms)
        result = vote_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._quorum.leader_id,
            leader_epoch=self._quorum.epoch,
            vote_granted=granted,
        )
        response = vote_api.VoteResponse(
            topics=[vote_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[result])]
        )
        if version >= 1:
            response.node_endpoints = [
                vote_api.NodeEndpoint(node_id=self._quorum.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in known_leader_endpoints(self._quorum)
            ]
        return response

    def _vote(
        self, voter_id: int, partition: vote_api.RequestPartitionData, now_ms: float
    ) -> tuple[ErrorCode, bool]:
        quorum, epoch = self._quorum, partition.replica_epoch
        last = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
        # A candidate has raised its epoch above that of its log; a prospective node has not.
        max_log_epoch = epoch if partition.pre_vote else epoch - 1
        if last.offset < 0 or not 0 <= last.epoch <= max_log_epoch:
            return ErrorCode.INVALID_REQUEST, False
        error = self._check_sender(partition.replica_id, epoch)
        if error is not ErrorCode.NONE:
            return error, False
        if epoch > quorum.epoch:
            quorum.transition_to_unattached(epoch, NO_LEADER, now_ms)
        if not self._is_local(voter_id, partition.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY, False
        candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
        end = quorum.log.view.end
        granted = quorum.settings.can_vote and grants_vote(
            quorum.state,
            candidate,
            up_to_date=(last.epoch, last.offset) >= (end.epoch, end.offset),
            pre_vote=partition.pre_vote,
        )
        if granted and not partition.pre_vote:
            quorum.record_vote(candidate, now_ms)
        return ErrorCode.NONE, granted

    def count_vote(self, voter_id: int, granted: bool, now_ms: float) -> None:
        """Record a voter's response, and end the election if it is decided."""
        state = self._quorum.state
        if not isinstance(state, Prospective | Candidate):
            return
        state.votes.record(voter_id, granted)
        if isinstance(state, Candidate):
            if state.votes.is_won:
                self._quorum.transition_to_leader(now_ms)
        elif state.votes.is_won:
            self._quorum.transition_to_candidate(now_ms)
        elif state.votes.is_lost:
            self.pre_vote_lost(now_ms)

    # BeginQuorumEpoch and EndQuorumEpoch.

    def begin_quorum_epoch(
        self, request: begin_api.BeginQuorumEpochRequest, version: int, now_ms: float
    ) -> begin_api.BeginQuorumEpochResponse:
        if not self._is_own_cluster(request.cluster_id):
            return begin_api.BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return begin_api.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error = self._check_sender(partition.leader_id, partition.leader_epoch)
        if error is ErrorCode.NONE:
            endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
            self.observe_leader(partition.leader_id, partition.leader_epoch, endpoints, now_ms)
            if not self._is_local(request.voter_id, partition.voter_directory_id):
                error = ErrorCode.INVALID_VOTER_KEY
        result = begin_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._quorum.leader_id,
            leader_epoch=self._quorum.epoch,
        )
        response = begin_api.BeginQuorumEpochResponse(
            topics=[begin_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[result])]
        )
        if version >= 1:
            response.node_endpoints = [
                begin_api.NodeEndpoint(node_id=self._quorum.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in known_leader_endpoints(self._quorum)
            ]
        return response

    def end_quorum_epoch(
        self, request: end_api.EndQuorumEpochRequest, version: int, now_ms: float
    ) -> end_api.EndQuorumEpochResponse:
        if not self._is_own_cluster(request.cluster_id):
            return end_api.EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return end_api.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error = self._check_sender(partition.leader_id, partition.leader_epoch)
        if error is ErrorCode.NONE:
            endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
            self.observe_leader(partition.leader_id, partition.leader_epoch, endpoints, now_ms)
            state = self._quorum.state
            if isinstance(state, Follower) and state.leader_id == partition.leader_id:
                self._leader_resigned(state, partition, now_ms)
        result = end_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._quorum.leader_id,
            leader_epoch=self._quorum.epoch,
        )
        response = end_api.EndQuorumEpochResponse(
            topics=[end_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[result])]
        )
        if version >= 1:
            response.node_endpoints = [
                end_api.NodeEndpoint(node_id=self._quorum.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in known_leader_endpoints(self._quorum)
            ]
        return response

    # Validation.

    def _is_own_cluster(self, cluster_id: str | None) -> bool:
        return cluster_id is None or cluster_id == self._quorum.settings.cluster_id

    def _check_sender(self, sender_id: int, epoch: int) -> ErrorCode:
        if epoch < self._quorum.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE

    def _is_local(self, voter_id: int, directory_id: DirectoryId) -> bool:
        """Whether the request is addressed to this replica; a negative id addresses any."""
        local = self._quorum.local
        return voter_id < 0 or (voter_id == local.id and directory_id in (ZERO_UUID, local.directory_id))

    # Leader epochs observed in requests and responses.

    def observe_leader(
        self, leader_id: int, epoch: int, endpoints: tuple[VoterEndpoint, ...], now_ms: float
    ) -> None:
        """Record the leader of `epoch` (not below ours) that a peer reports; `NO_LEADER` if unknown."""
        quorum = self._quorum
        if epoch == quorum.epoch and leader_id == quorum.local.id:
            # If this node is not the leader, it was before a restart, and can only lead a later epoch.
            return
        self._check_one_leader(leader_id, epoch)
        endpoints = endpoints or quorum.voters.endpoints(leader_id)
        if epoch > quorum.epoch:
            if leader_id in (NO_LEADER, quorum.local.id):
                quorum.transition_to_unattached(epoch, NO_LEADER, now_ms)
            else:
                quorum.transition_to_follower(epoch, leader_id, endpoints, now_ms)
        elif leader_id != NO_LEADER and (
            quorum.leader_id == NO_LEADER or len(endpoints) > len(quorum.leader_endpoints)
        ):
            quorum.transition_to_follower(epoch, leader_id, endpoints, now_ms)

    def observe_response(
        self,
        error: ErrorCode,
        leader_id: int,
        epoch: int,
        endpoints: tuple[VoterEndpoint, ...],
        now_ms: float,
    ) -> bool:
        """Record the epoch and leader in a response; True if the response needs no further handling."""
        quorum = self._quorum
        if epoch < quorum.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > quorum.epoch or error in _WRONG_LEADER:
            self.observe_leader(leader_id, epoch, endpoints, now_ms)
            return True
        if leader_id != NO_LEADER and quorum.leader_id == NO_LEADER:
            self.observe_leader(leader_id, epoch, endpoints, now_ms)
            return error is not ErrorCode.NONE
        return error is ErrorCode.INVALID_VOTER_KEY

    def _check_one_leader(self, leader_id: int, epoch: int) -> None:
        known = self._quorum.leader_id
        if epoch == self._quorum.epoch and NO_LEADER not in (leader_id, known) and leader_id != known:
            raise RaftSafetyViolation(f"both node {known} and node {leader_id} are leaders of epoch {epoch}")

    # Replacing a leader.

    def leader_exited(self, now_ms: float) -> None:
        """Start to replace the leader, whose process has exited. Voters start elections in order of id."""
        quorum, state = self._quorum, self._quorum.state
        known = quorum.unavailable_leader
        leader_id = quorum.leader_id
        if not quorum.can_become_candidate or leader_id == NO_LEADER or (known and known.has_exited):
            return
        # The leader itself is not among the voters that start an election before this node.
        leader_is_before = leader_id in quorum.voters.ids and leader_id < quorum.local.id
        rank = quorum.rank - (1 if leader_is_before else 0)
        unavailable = UnavailableLeader(leader_id, quorum.epoch, has_exited=True, rank=rank)
        if isinstance(state, Follower):
            quorum.last_unavailable_leader = unavailable
            state.has_fetched = False
            state.deadline = min(state.deadline, now_ms + unavailable.first_delay_ms)
        elif isinstance(state, Prospective):
            quorum.last_unavailable_leader = unavailable
            if state.leader_id in state.votes.unanswered:
                state.votes.record(state.leader_id, False)
            if state.votes.is_lost:
                self.pre_vote_lost(now_ms)

    def _leader_resigned(
        self, state: Follower, partition: end_api.RequestPartitionData, now_ms: float
    ) -> None:
        quorum = self._quorum
        rank, delay_ms = self._successor_rank(partition)
        quorum.last_unavailable_leader = UnavailableLeader(
            state.leader_id, quorum.epoch, has_exited=False, rank=rank
        )
        state.has_fetched = False
        state.deadline = now_ms + delay_ms

    def _successor_rank(self, partition: end_api.RequestPartitionData) -> tuple[int, int]:
        """Return this node's rank among the preferred candidates and its delay: the first starts an election
        at once, and the delay doubles with each later rank."""
        candidates = [
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in partition.preferred_candidates
        ] or [ReplicaKey(each) for each in partition.preferred_successors]
        if not candidates:
            # The leader resigned because it restarted, and does not know the other logs.
            return self._quorum.rank, self._quorum.rank * RANK_DELAY_MS
        local = self._quorum.local
        rank = next(
            (
                index
                for index, key in enumerate(candidates)
                if key.id == local.id and key.directory_id in (ZERO_UUID, local.directory_id)
            ),
            len(candidates),
        )
        max_ms = self._quorum.settings.election_backoff_max_ms
        if rank == 0:
            return rank, 0
        if rank >= len(candidates):
            return rank, max_ms
        return rank, min(max_ms, (max_ms >> (len(candidates) - 1)) << (rank - 1))

    def pre_vote_lost(self, now_ms: float) -> None:
        """Return to the leader that the other voters still fetch from, if one is known."""
        quorum, state = self._quorum, self._quorum.state
        if not isinstance(state, Prospective):
            return
        unavailable = quorum.unavailable_leader
        if state.leader_id == NO_LEADER or quorum.quorum_endpoint(state.leader_endpoints) is None:
            quorum.transition_to_unattached(quorum.epoch, state.leader_id, now_ms)
        else:
            quorum.transition_to_follower(quorum.epoch, state.leader_id, state.leader_endpoints, now_ms)
        if unavailable is not None and isinstance(quorum.state, Follower):
            quorum.state.deadline = now_ms + unavailable.next_delay_ms(quorum.settings.fetch_timeout_ms)


def grants_vote(state: State, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
    """Whether to grant a vote or pre-vote.

    A pre-vote binds to nothing, so every node grants it that has not fetched from the leader. A vote is
    granted once per epoch, by nodes that know no leader. Neither is granted to a candidate whose log is less
    up to date (Raft §5.4.1).
    """
    if isinstance(state, Leader):
        return False
    if pre_vote:
        return up_to_date and not (isinstance(state, Follower) and state.has_fetched)
    if not isinstance(state, Unattached | Prospective):
        return False
    if state.voted is not None:
        return is_vote_for(state.voted, candidate)
    return up_to_date and state.leader_id == NO_LEADER


def is_metadata_partition(topics: Sequence[_Topic]) -> bool:
    """Whether a request or response names exactly the metadata partition."""
    return (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and len(topics[0].partitions) == 1
        and topics[0].partitions[0].partition_index == 0
    )


def known_leader_endpoints(quorum: QuorumState) -> list[VoterEndpoint]:
    """Return the leader's endpoint for a response's node endpoints, as a list of at most one."""
    endpoint = quorum.leader_endpoint
    return [] if endpoint is None or quorum.leader_id < 0 else [endpoint]


def check_leader_epoch(quorum: QuorumState, epoch: int) -> ErrorCode:
    """Return the error of a request that only the leader of `epoch` can handle."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if quorum.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
