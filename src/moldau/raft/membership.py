"""Membership: voter changes (KIP-853), one at a time, decided by the leader.

A change is a VotersRecord and takes effect when it is appended. A new change starts only after the previous
one is committed and the leader has committed a record of its own epoch; otherwise two leaders could each
reach a majority of a different voter set. A node must be caught up to be added, and the leader first requests
its supported versions (ApiVersions).

The voters of a static quorum cannot change. They report their directory ids and endpoints to the leader
(UpdateRaftVoter), which writes them into the log when `kraft.version` is upgraded to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from moldau.protocol.stored.control import KRaftVersionRecord, VotersRecord
from moldau.raft.election import check_leader_epoch
from moldau.raft.quorum_state import QuorumState
from moldau.raft.states import Leader
from moldau.raft.types import OutboundRequest, ReplicaKey, VoterChangeResponse
from moldau.raft.voters import DYNAMIC, KRAFT_VERSION, STATIC, Voter, VoterEndpoint, VoterSet

#: The error and message of a rejected voter change.
Rejection = tuple[ErrorCode, str]
ControlRecord = VotersRecord | KRaftVersionRecord


@dataclass(slots=True)
class _PendingChange:
    """A voter change that has started and is not committed yet."""

    deadline: float
    #: The voter to add; None if a voter is removed.
    added: Voter | None
    ack_when_committed: bool = True
    is_answered: bool = False
    #: The new voter set, once it is decided, and the offset of its record.
    voters: VoterSet | None = None
    offset: int | None = None

    def response(self, error: ErrorCode, message: str | None) -> VoterChangeResponse:
        if self.added is not None:
            return AddRaftVoterResponse(error_code=error, error_message=message)
        return RemoveRaftVoterResponse(error_code=error, error_message=message)


@dataclass(slots=True)
class _LeaderTerm:
    """The membership state of one leader epoch."""

    leader: Leader
    #: A static quorum's voters as they have reported themselves; None once they are being written.
    reported_voters: VoterSet | None
    change: _PendingChange | None = None
    records: list[ControlRecord] = field(default_factory=list)
    must_resign: bool = False


class VoterChanges:
    """The leader's pending voter change, from the decision to the commit."""

    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum
        self._term: _LeaderTerm | None = None
        self._response: VoterChangeResponse | None = None

    @property
    def term(self) -> _LeaderTerm | None:
        """The state of the current leader epoch. A pending change ends with the epoch it was started in."""
        leader = self._quorum.leader
        if self._term is not None and self._term.leader is not leader:
            self._finish(self._term, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
            self._term = None
        if self._term is None and leader is not None:
            static = self._quorum.kraft_version == STATIC
            reported = self._quorum.voters.with_voter(self._quorum.settings.local_voter) if static else None
            self._term = _LeaderTerm(leader, reported)
        return self._term

    @property
    def deadline(self) -> float | None:
        """The time at which the pending change times out."""
        term = self.term
        return None if term is None or term.change is None else term.change.deadline

    @property
    def must_resign(self) -> bool:
        """Whether the leader has committed its own removal."""
        term = self.term
        return term is not None and term.must_resign

    def take(self) -> tuple[tuple[ControlRecord, ...], VoterChangeResponse | None]:
        """Take the control records to append and the response to the client of a finished change."""
        term = self.term
        records = () if term is None else tuple(term.records)
        if term is not None:
            term.records.clear()
        response, self._response = self._response, None
        return records, response

    # Adding and removing voters.

    def _rejection(self, now_ms: float) -> Rejection | None:
        """Return why no change can start now."""
        term, kraft_version = self.term, self._quorum.kraft_version
        if term is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node is not the leader of the metadata quorum"
        self.expire(now_ms)
        if term.change is not None:
            return ErrorCode.REQUEST_TIMED_OUT, "another voter change is in progress"
        if term.leader.high_watermark < 0:
            return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed a record in its epoch yet"
        if kraft_version != DYNAMIC:
            message = f"{KRAFT_VERSION} {kraft_version} does not support voter changes"
            return ErrorCode.UNSUPPORTED_VERSION, message
        if not self._is_last_change_committed:
            return ErrorCode.REQUEST_TIMED_OUT, "the previous voter change is not committed yet"
        return None

    @property
    def _is_last_change_committed(self) -> bool:
        term, offset = self.term, self._quorum.history.voters_offset
        return term is not None and offset is not None and offset < term.leader.high_watermark

    def add(self, voter: Voter, *, ack_when_committed: bool, now_ms: float) -> Rejection | None:
        """Start to add a voter by requesting its versions; None if the change has started."""
        rejection = self._rejection(now_ms)
        term = self.term
        if rejection is not None or term is None:
            return rejection
        if self._quorum.voters.get(voter.id) is not None:
            return ErrorCode.DUPLICATE_VOTER, f"node {voter.id} is already a voter"
        endpoint = self._quorum.quorum_endpoint(voter.endpoints)
        if endpoint is None or not self._quorum.in_flight.send(
            OutboundRequest(voter.id, endpoint, ApiVersionsRequest()), now_ms
        ):
            return ErrorCode.REQUEST_TIMED_OUT, f"ApiVersions cannot be sent to node {voter.id} now"
        deadline = now_ms + self._quorum.settings.request_timeout_ms
        term.change = _PendingChange(deadline, voter, ack_when_committed)
        return None

    def remove(self, key: ReplicaKey, now_ms: float) -> Rejection | None:
        """Start to remove a voter; None if the change has started."""
        rejection = self._rejection(now_ms)
        term, voters = self.term, self._quorum.voters
        if rejection is not None or term is None:
            return rejection
        known = voters.get(key.id)
        if known is None or known.directory_id != key.directory_id or len(voters.voters) == 1:
            return ErrorCode.VOTER_NOT_FOUND, f"node {key.id} cannot be removed from the voters {voters.ids}"
        change = _PendingChange(now_ms + self._quorum.settings.request_timeout_ms, None)
        change.voters = voters.removing(key.id)
        term.change = change
        term.records.append(change.voters.to_record())
        return None

    def on_api_versions(self, voter_id: int, response: ApiVersionsResponse | None, now_ms: float) -> bool:
        """Continue an addition with the ApiVersions response (None if it failed); False on an error."""
        term = self.term
        change = None if term is None else term.change
        if term is None or change is None or change.added is None or change.added.id != voter_id:
            return True
        if change.voters is not None:
            return True
        if response is None or response.error_code != ErrorCode.NONE:
            self._finish(term, ErrorCode.REQUEST_TIMED_OUT, f"node {voter_id} did not answer ApiVersions")
            return False
        versions = next((each for each in response.supported_features if each.name == KRAFT_VERSION), None)
        minimum, maximum = (
            (STATIC, STATIC) if versions is None else (versions.min_version, versions.max_version)
        )
        added = change.added._replace(min_kraft_version=minimum, max_kraft_version=maximum)
        if not added.supports(self._quorum.kraft_version):
            message = f"node {voter_id} supports only {KRAFT_VERSION} {minimum} to {maximum}"
            self._finish(term, ErrorCode.INVALID_REQUEST, message)
        elif not term.leader.is_caught_up(ReplicaKey(added.id, added.directory_id), now_ms):
            self._finish(term, ErrorCode.REQUEST_TIMED_OUT, f"node {voter_id} is not caught up")
        else:
            self._append_addition(term, change, added)
        return True

    def _append_addition(self, term: _LeaderTerm, change: _PendingChange, added: Voter) -> None:
        change.voters = self._quorum.voters.adding(added)
        term.records.append(change.voters.to_record())
        if not change.ack_when_committed:
            change.is_answered = True
            self._response = change.response(ErrorCode.NONE, None)

    def voters_appended(self, offset: int, voters: VoterSet) -> None:
        """Apply a voter set that was appended at `offset`."""
        term = self.term
        if term is None:
            return
        term.leader.change_voters(voters)
        if term.change is not None and term.change.voters == voters:
            term.change.offset = offset

    def high_watermark_advanced(self) -> None:
        """Finish the pending change if it is committed; resign if it removed the leader."""
        term = self.term
        if term is None:
            return
        change = term.change
        if change is not None and change.offset is not None and term.leader.high_watermark > change.offset:
            self._finish(term, ErrorCode.NONE, None)
        if self._is_last_change_committed and not self._quorum.is_voter:
            term.must_resign = True

    def expire(self, now_ms: float) -> None:
        term = self.term
        if term is not None and term.change is not None and now_ms >= term.change.deadline:
            self._finish(term, ErrorCode.REQUEST_TIMED_OUT, None)

    def _finish(self, term: _LeaderTerm, error: ErrorCode, message: str | None) -> None:
        change, term.change = term.change, None
        if change is not None and not change.is_answered:
            self._response = change.response(error, message)

    # Updated voters, and the upgrade from a static to a dynamic quorum.

    def update(self, voter: Voter, now_ms: float) -> ErrorCode:
        """Replace the endpoints and versions of a voter."""
        term, version = self.term, self._quorum.kraft_version
        self.expire(now_ms)
        if term is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if term.change is not None or term.leader.high_watermark < 0:
            return ErrorCode.REQUEST_TIMED_OUT
        voters = self._quorum.voters if version == DYNAMIC else term.reported_voters
        if voters is None or (version == DYNAMIC and not self._is_last_change_committed):
            return ErrorCode.REQUEST_TIMED_OUT
        if not voter.supports(version) or self._quorum.quorum_endpoint(voter.endpoints) is None:
            return ErrorCode.INVALID_REQUEST
        known = voters.get(voter.id)
        if known is None or (version == DYNAMIC and not known.is_replica(voter.id, voter.directory_id)):
            return ErrorCode.VOTER_NOT_FOUND
        updated = voters.with_voter(voter)
        if version == DYNAMIC:
            term.records.append(updated.to_record())
        else:
            term.reported_voters = updated
        term.leader.record_contact(ReplicaKey(voter.id, voter.directory_id), now_ms)
        return ErrorCode.NONE

    def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """Upgrade `kraft.version` from 0 to 1, or raise KafkaError. It cannot be downgraded."""
        term, current = self.term, self._quorum.kraft_version
        if term is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the leader of the metadata quorum.")
        if version == current or (version == DYNAMIC and current == STATIC and term.reported_voters is None):
            return
        if version != DYNAMIC or term.reported_voters is None:
            message = f"{KRAFT_VERSION} cannot be changed from {current} to {version}."
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
        unsupported = [
            voter.id
            for voter in term.reported_voters.voters
            if not voter.supports(version) or voter.directory_id == ZERO_UUID
        ]
        if unsupported:
            message = (
                f"The voters {unsupported} do not support {KRAFT_VERSION} {version}, or have not reported "
                "their supported versions yet."
            )
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
        if not validate_only:
            record = KRaftVersionRecord(version=0, kraft_version=version)
            term.records += [record, term.reported_voters.to_record()]
            term.reported_voters = None


class MembershipRequests:
    """Validates AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter requests and starts the change."""

    def __init__(self, quorum: QuorumState, changes: VoterChanges) -> None:
        self._quorum = quorum
        self._changes = changes

    def add(self, request: AddRaftVoterRequest, now_ms: float) -> AddRaftVoterResponse | None:
        """Return None if the change has started; its response is part of a later `Ready`."""
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        rejection = self._check(request.cluster_id)
        if rejection is None and (request.voter_id < 0 or request.voter_directory_id == ZERO_UUID):
            rejection = ErrorCode.INVALID_REQUEST, "a voter to add needs an id and a directory id"
        if rejection is None and self._quorum.quorum_endpoint(endpoints) is None:
            message = f"the voter to add has no endpoint for the listener {self._quorum.settings.listener}"
            rejection = ErrorCode.INVALID_REQUEST, message
        if rejection is None:
            voter = Voter(request.voter_id, request.voter_directory_id, endpoints)
            rejection = self._changes.add(voter, ack_when_committed=request.ack_when_committed, now_ms=now_ms)
        if rejection is None:
            return None
        return AddRaftVoterResponse(error_code=rejection[0], error_message=rejection[1])

    def remove(self, request: RemoveRaftVoterRequest, now_ms: float) -> RemoveRaftVoterResponse | None:
        """Return None if the change has started; its response is part of a later `Ready`."""
        rejection = self._check(request.cluster_id)
        if rejection is None and (request.voter_id < 0 or request.voter_directory_id == ZERO_UUID):
            rejection = ErrorCode.INVALID_REQUEST, "a voter to remove needs an id and a directory id"
        if rejection is None:
            key = ReplicaKey(request.voter_id, request.voter_directory_id)
            rejection = self._changes.remove(key, now_ms)
        if rejection is None:
            return None
        return RemoveRaftVoterResponse(error_code=rejection[0], error_message=rejection[1])

    def _check(self, cluster_id: str | None) -> Rejection | None:
        own = self._quorum.settings.cluster_id
        if cluster_id not in (None, own):
            return ErrorCode.INCONSISTENT_CLUSTER_ID, f"the cluster id is {own}, not {cluster_id}"
        error = check_leader_epoch(self._quorum, self._quorum.epoch)
        if error is ErrorCode.NONE:
            return None
        return error, "this node is not the leader of the metadata quorum"

    def update(self, request: UpdateRaftVoterRequest, now_ms: float) -> UpdateRaftVoterResponse:
        error = self._update(request, now_ms)
        leader = CurrentLeader(leader_id=self._quorum.leader_id, leader_epoch=self._quorum.epoch)
        endpoint = self._quorum.leader_endpoint
        if endpoint is not None:
            leader.host, leader.port = endpoint.host, endpoint.port
        return UpdateRaftVoterResponse(error_code=error, current_leader=leader)

    def _update(self, request: UpdateRaftVoterRequest, now_ms: float) -> ErrorCode:
        if request.cluster_id not in (None, self._quorum.settings.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        error = check_leader_epoch(self._quorum, request.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return error
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        minimum = request.kraft_version_feature.min_supported_version
        maximum = request.kraft_version_feature.max_supported_version
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID or not 0 <= minimum <= maximum:
            return ErrorCode.INVALID_REQUEST
        if self._quorum.quorum_endpoint(endpoints) is None:
            return ErrorCode.INVALID_REQUEST
        voter = Voter(request.voter_id, request.voter_directory_id, endpoints, minimum, maximum)
        return self._changes.update(voter, now_ms)
