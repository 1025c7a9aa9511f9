"""Requests to change who votes: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from moldau.raft.answering import check_leader_request
from moldau.raft.core import Core
from moldau.raft.types import ReplicaKey
from moldau.raft.voter_changes import Refusal, VoterChanges
from moldau.raft.voters import Voter, VoterEndpoint


class Membership:
    def __init__(self, core: Core, changes: VoterChanges) -> None:
        self._core = core
        self._changes = changes

    def add(self, request: AddRaftVoterRequest, now_ms: float) -> AddRaftVoterResponse | None:
        """None: under way."""
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        refusal = self._check(request.cluster_id)
        if refusal is None and (request.voter_id < 0 or request.voter_directory_id == ZERO_UUID):
            refusal = ErrorCode.INVALID_REQUEST, "the new voter needs an id and a directory id"
        if refusal is None and self._core.named(endpoints) is None:
            message = f"the new voter has no endpoint for the listener {self._core.settings.listener}"
            refusal = ErrorCode.INVALID_REQUEST, message
        if refusal is None:
            voter = Voter(request.voter_id, request.voter_directory_id, endpoints)
            refusal = self._changes.add(voter, ack_when_committed=request.ack_when_committed, now_ms=now_ms)
        if refusal is None:
            return None
        return AddRaftVoterResponse(error_code=refusal[0], error_message=refusal[1])

    def remove(self, request: RemoveRaftVoterRequest, now_ms: float) -> RemoveRaftVoterResponse | None:
        """None: under way."""
        refusal = self._check(request.cluster_id)
        if refusal is None and (request.voter_id < 0 or request.voter_directory_id == ZERO_UUID):
            refusal = ErrorCode.INVALID_REQUEST, "a voter is removed by its id and its directory id"
        if refusal is None:
            key = ReplicaKey(request.voter_id, request.voter_directory_id)
            refusal = self._changes.remove(key, now_ms)
        if refusal is None:
            return None
        return RemoveRaftVoterResponse(error_code=refusal[0], error_message=refusal[1])

    def _check(self, cluster_id: str | None) -> Refusal | None:
        own = self._core.settings.cluster_id
        if cluster_id not in (None, own):
            message = f"the cluster id is {own} and not {cluster_id}"
            return ErrorCode.INCONSISTENT_CLUSTER_ID, message
        error = check_leader_request(self._core, self._core.epoch)
        return None if error is ErrorCode.NONE else (error, "this node does not lead the quorum")

    def update(self, request: UpdateRaftVoterRequest, now_ms: float) -> UpdateRaftVoterResponse:
        error = self._update(request, now_ms)
        leader = CurrentLeader(leader_id=self._core.leader_id, leader_epoch=self._core.epoch)
        endpoint = self._core.named(self._core.leader_endpoints)
        if endpoint is not None:
            leader.host, leader.port = endpoint.host, endpoint.port
        return UpdateRaftVoterResponse(error_code=error, current_leader=leader)

    def _update(self, request: UpdateRaftVoterRequest, now_ms: float) -> ErrorCode:
        if request.cluster_id not in (None, self._core.settings.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        error = check_leader_request(self._core, request.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return error
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        minimum = request.kraft_version_feature.min_supported_version
        maximum = request.kraft_version_feature.max_supported_version
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID or not 0 <= minimum <= maximum:
            return ErrorCode.INVALID_REQUEST
        if self._core.named(endpoints) is None:
            return ErrorCode.INVALID_REQUEST
        voter = Voter(request.voter_id, request.voter_directory_id, endpoints, minimum, maximum)
        return self._changes.update(voter, now_ms)
