"""What a node of the quorum answers: votes, the beginning and the end of an epoch, fetches.

An answer always tells the epoch and the leader this node knows, and where the leader is, so that whoever
asked the wrong one, or is behind, learns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC, ZERO_UUID, DirectoryId
from moldau.protocol.messages import begin_quorum_epoch as begin_api
from moldau.protocol.messages import end_quorum_epoch as end_api
from moldau.protocol.messages import vote as vote_api
from moldau.raft.core import Core
from moldau.raft.leader import Leader
from moldau.raft.learning import Learning
from moldau.raft.lost_leader import STEP_MS
from moldau.raft.states import Follower, grants_vote
from moldau.raft.succession import Succession
from moldau.raft.types import NOBODY, OffsetAndEpoch, ReplicaKey
from moldau.raft.voters import VoterEndpoint


class _Partition(Protocol):
    partition_index: int


class _Topic(Protocol):
    topic_name: str

    @property
    def partitions(self) -> Sequence[_Partition]: ...


class Answering:
    def __init__(self, core: Core, learning: Learning, succession: Succession) -> None:
        self._core = core
        self._succession = succession
        self._learning = learning

    # Votes.

    def vote(self, request: vote_api.VoteRequest, version: int, now_ms: float) -> vote_api.VoteResponse:
        if not self._is_our_cluster(request.cluster_id):
            return vote_api.VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return vote_api.VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error, granted = self._vote(request.voter_id, partition, now_ms)
        answer = vote_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._core.leader_id,
            leader_epoch=self._core.epoch,
            vote_granted=granted,
        )
        response = vote_api.VoteResponse(
            topics=[vote_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[answer])]
        )
        if version >= 1:
            response.node_endpoints = [
                vote_api.NodeEndpoint(node_id=self._core.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in leader_endpoint(self._core)
            ]
        return response

    def _vote(
        self, voter_id: int, partition: vote_api.RequestPartitionData, now_ms: float
    ) -> tuple[ErrorCode, bool]:
        core, epoch = self._core, partition.replica_epoch
        last = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
        # A candidate has raised its epoch above that of its log; who only asks has not.
        highest = epoch if partition.pre_vote else epoch - 1
        if last.offset < 0 or not 0 <= last.epoch <= highest:
            return ErrorCode.INVALID_REQUEST, False
        error = self._check_voter_request(partition.replica_id, epoch)
        if error is not ErrorCode.NONE:
            return error, False
        if epoch > core.epoch:
            core.unattached(epoch, NOBODY, now_ms)
        if not self._is_meant(voter_id, partition.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY, False
        candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
        end = core.log.end
        granted = core.settings.can_vote and grants_vote(
            core.state,
            candidate,
            up_to_date=(last.epoch, last.offset) >= (end.epoch, end.offset),
            pre_vote=partition.pre_vote,
        )
        if granted and not partition.pre_vote:
            core.voted_for(candidate, now_ms)
        return ErrorCode.NONE, granted

    # Epochs.

    def begin_quorum_epoch(
        self, request: begin_api.BeginQuorumEpochRequest, version: int, now_ms: float
    ) -> begin_api.BeginQuorumEpochResponse:
        if not self._is_our_cluster(request.cluster_id):
            return begin_api.BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return begin_api.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error = self._check_voter_request(partition.leader_id, partition.leader_epoch)
        if error is ErrorCode.NONE:
            endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
            self._learning.of_leader(partition.leader_id, partition.leader_epoch, endpoints, now_ms)
            if not self._is_meant(request.voter_id, partition.voter_directory_id):
                error = ErrorCode.INVALID_VOTER_KEY
        answer = begin_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._core.leader_id,
            leader_epoch=self._core.epoch,
        )
        response = begin_api.BeginQuorumEpochResponse(
            topics=[begin_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[answer])]
        )
        if version >= 1:
            response.node_endpoints = [
                begin_api.NodeEndpoint(node_id=self._core.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in leader_endpoint(self._core)
            ]
        return response

    def end_quorum_epoch(
        self, request: end_api.EndQuorumEpochRequest, version: int, now_ms: float
    ) -> end_api.EndQuorumEpochResponse:
        if not self._is_our_cluster(request.cluster_id):
            return end_api.EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not is_metadata_partition(request.topics):
            return end_api.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        partition = request.topics[0].partitions[0]
        error = self._check_voter_request(partition.leader_id, partition.leader_epoch)
        if error is ErrorCode.NONE:
            endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
            self._learning.of_leader(partition.leader_id, partition.leader_epoch, endpoints, now_ms)
            state = self._core.state
            if isinstance(state, Follower) and state.leader_id == partition.leader_id:
                rank, backoff_ms = self._place(partition)
                self._succession.leader_resigned(state, rank, backoff_ms, now_ms)
        answer = end_api.ResponsePartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self._core.leader_id,
            leader_epoch=self._core.epoch,
        )
        response = end_api.EndQuorumEpochResponse(
            topics=[end_api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[answer])]
        )
        if version >= 1:
            response.node_endpoints = [
                end_api.NodeEndpoint(node_id=self._core.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in leader_endpoint(self._core)
            ]
        return response

    def _place(self, partition: end_api.RequestPartitionData) -> tuple[int, int]:
        """This node's place among the successors, and how long it waits: the first stands at once, each later
        one leaves twice the time to those before it."""
        candidates = [
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in partition.preferred_candidates
        ] or [ReplicaKey(each) for each in partition.preferred_successors]
        if not candidates:
            # It led before a restart, and knows nobody's log.
            return self._core.rank, self._core.rank * STEP_MS
        local = self._core.local
        position = next(
            (
                index
                for index, key in enumerate(candidates)
                if key.id == local.id and key.directory_id in (ZERO_UUID, local.directory_id)
            ),
            len(candidates),
        )
        longest_ms = self._core.settings.election_backoff_max_ms
        if position == 0:
            return position, 0
        if position >= len(candidates):
            return position, longest_ms
        return position, min(longest_ms, (longest_ms >> (len(candidates) - 1)) << (position - 1))

    # What makes a request wrong.

    def _is_our_cluster(self, cluster_id: str | None) -> bool:
        return cluster_id is None or cluster_id == self._core.settings.cluster_id

    def _check_voter_request(self, sender_id: int, epoch: int) -> ErrorCode:
        if epoch < self._core.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE

    def _is_meant(self, voter_id: int, directory_id: DirectoryId) -> bool:
        """Whether this is the replica that the sender takes it for; without an id it does not say."""
        local = self._core.local
        return voter_id < 0 or (voter_id == local.id and directory_id in (ZERO_UUID, local.directory_id))


def is_metadata_partition(topics: Sequence[_Topic]) -> bool:
    return (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and len(topics[0].partitions) == 1
        and topics[0].partitions[0].partition_index == 0
    )


def leader_endpoint(core: Core) -> list[VoterEndpoint]:
    """One or none."""
    endpoint = core.named(core.leader_endpoints)
    return [] if endpoint is None or core.leader_id < 0 else [endpoint]


def check_leader_request(core: Core, epoch: int) -> ErrorCode:
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(core.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER
