"""Timeouts: what a quorum member does as time passes, by its role: expired deadlines and requests due."""

from __future__ import annotations

from moldau.base.ids import Randomness
from moldau.protocol.schema import Message
from moldau.raft import requests
from moldau.raft.election import Election
from moldau.raft.membership import VoterChanges
from moldau.raft.quorum_state import QuorumState
from moldau.raft.states import Candidate, Follower, Leader, Prospective, Resigned, State, Unattached
from moldau.raft.types import NO_LEADER, OutboundRequest
from moldau.raft.voters import STATIC, VoterEndpoint

#: Bootstrap servers get the ids -2, -3, ..., as in Kafka.
_FIRST_BOOTSTRAP_ID = -2


class Timeouts:
    def __init__(
        self, quorum: QuorumState, election: Election, changes: VoterChanges, randomness: Randomness
    ) -> None:
        self._quorum = quorum
        self._election = election
        self._changes = changes
        self._randomness = randomness
        self._bootstrap_servers = _bootstrap_servers(quorum)

    def poll(self, now_ms: float) -> None:
        """Perform what is due, repeatedly until the role no longer changes."""
        self._quorum.in_flight.expire(now_ms)
        state: State | None = None
        while state is not self._quorum.state:
            state = self._quorum.state
            self._poll_state(state, now_ms)

    def _poll_state(self, state: State, now_ms: float) -> None:
        match state:
            case Leader():
                self._poll_leader(state, now_ms)
            case Candidate() | Prospective():
                self._poll_election(state, now_ms)
            case Follower():
                self._poll_follower(state, now_ms)
            case Unattached():
                if self._quorum.can_become_candidate and now_ms >= state.deadline:
                    self._quorum.transition_to_prospective(now_ms)
                else:
                    self._fetch_from_bootstrap(now_ms)
            case Resigned():
                self._poll_resigned(state, now_ms)

    @property
    def next_deadline(self) -> float | None:
        state = self._quorum.state
        deadlines = [self._quorum.in_flight.next_deadline]
        if isinstance(state, Leader):
            deadlines = [state.check_quorum_deadline, state.begin_epoch_deadline, self._changes.deadline]
        elif not isinstance(state, Follower | Unattached) or self._quorum.can_become_candidate:
            deadlines.append(state.deadline)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # By role.

    def _poll_leader(self, state: Leader, now_ms: float) -> None:
        if state.is_past_check_quorum(now_ms) or self._changes.must_resign:
            self._quorum.transition_to_resigned(now_ms)
            return
        self._changes.expire(now_ms)
        if now_ms >= state.begin_epoch_deadline:
            for voter in state.voters_to_notify(now_ms):
                request = requests.begin_quorum_epoch_request(self._quorum, voter)
                self._send_to_voter(voter.id, request, now_ms)

    def _poll_election(self, state: Candidate | Prospective, now_ms: float) -> None:
        if now_ms >= state.deadline:
            if isinstance(state, Candidate):
                self._quorum.transition_to_prospective(now_ms)
            else:
                self._election.pre_vote_lost(now_ms)
            return
        if state.votes.is_lost:
            return
        pre_vote = isinstance(state, Prospective)
        for voter_id in state.votes.unanswered:
            voter = self._quorum.voters.get(voter_id)
            if voter is not None and self._quorum.in_flight.is_ready(voter_id):
                request = requests.vote_request(self._quorum, voter, pre_vote=pre_vote)
                self._send_to_voter(voter_id, request, now_ms)

    def _poll_follower(self, state: Follower, now_ms: float) -> None:
        if self._quorum.can_become_candidate and now_ms >= state.deadline:
            self._quorum.transition_to_prospective(now_ms)
            return
        if now_ms >= state.update_voter_deadline:
            request = self._membership_request(state)
            if request is None or self._send_to_leader(state, request, now_ms):
                state.update_voter_deadline = now_ms + self._quorum.settings.fetch_timeout_ms
        self._fetch(state, now_ms)

    def _membership_request(self, state: Follower) -> Message | None:
        """Return the request of a voter whose entry in the voter set is outdated, or of a controller that
        adds itself (`controller.quorum.auto.join.enable`)."""
        quorum = self._quorum
        if quorum.is_voter:
            if quorum.kraft_version == STATIC:
                return None if state.has_updated_leader else requests.update_voter_request(quorum)
            return requests.update_voter_request(quorum) if quorum.needs_voter_update() else None
        if not (quorum.settings.can_vote and quorum.settings.auto_join) or quorum.kraft_version == STATIC:
            return None
        former = quorum.voters.get(quorum.local.id)
        if former is not None:
            # The voter is this node with another directory, whose log is lost.
            return requests.remove_voter_request(quorum, former)
        return requests.add_voter_request(quorum)

    def _fetch(self, state: Follower, now_ms: float) -> None:
        if not self._quorum.log.can_fetch:
            return
        if self._quorum.in_flight.is_backing_off(state.leader_id):
            self._fetch_from_bootstrap(now_ms)
        elif self._quorum.in_flight.is_ready(state.leader_id):
            snapshot = state.snapshot
            request: Message = (
                requests.fetch_request(self._quorum)
                if snapshot is None
                else requests.fetch_snapshot_request(self._quorum, snapshot, state)
            )
            self._send_to_leader(state, request, now_ms)

    def _poll_resigned(self, state: Resigned, now_ms: float) -> None:
        if now_ms >= state.deadline:
            self._quorum.transition_to_unattached(self._quorum.epoch + 1, NO_LEADER, now_ms)
            return
        for voter_id in state.unacknowledged:
            if self._quorum.in_flight.is_ready(voter_id):
                request = requests.end_quorum_epoch_request(self._quorum, state)
                self._send_to_voter(voter_id, request, now_ms)

    # Destinations.

    def _send_to_voter(self, voter_id: int, request: Message, now_ms: float) -> None:
        endpoint = self._quorum.voters.endpoint(voter_id, self._quorum.settings.listener)
        if endpoint is not None:
            self._quorum.in_flight.send(OutboundRequest(voter_id, endpoint, request), now_ms)

    def _send_to_leader(self, state: Follower, request: Message, now_ms: float) -> bool:
        endpoint = self._quorum.quorum_endpoint(state.leader_endpoints)
        if endpoint is None:
            return False
        return self._quorum.in_flight.send(OutboundRequest(state.leader_id, endpoint, request), now_ms)

    def _fetch_from_bootstrap(self, now_ms: float) -> None:
        """Send Fetch to a bootstrap server, whose response names the leader."""
        servers, in_flight = self._bootstrap_servers, self._quorum.in_flight
        if not servers or in_flight.any_in_flight or not self._quorum.log.can_fetch:
            return
        first = self._randomness.randrange(0, len(servers))
        for node_id, endpoint in servers[first:] + servers[:first]:
            if in_flight.is_ready(node_id):
                request = requests.fetch_request(self._quorum)
                in_flight.send(OutboundRequest(node_id, endpoint, request), now_ms)
                return


def _bootstrap_servers(quorum: QuorumState) -> list[tuple[int, VoterEndpoint]]:
    """Return the configured bootstrap servers, or the static voters, without this node itself."""
    settings = quorum.settings
    own = {(endpoint.host, endpoint.port) for endpoint in settings.endpoints}
    if not settings.bootstrap_servers:
        found = [
            (voter.id, quorum.quorum_endpoint(voter.endpoints)) for voter in quorum.history.static.voters
        ]
        return [
            (node_id, endpoint)
            for node_id, endpoint in found
            if endpoint is not None and (node_id != settings.node_id or not settings.can_vote)
        ]
    return [
        (_FIRST_BOOTSTRAP_ID - index, VoterEndpoint(settings.listener, host, port))
        for index, (host, port) in enumerate(settings.bootstrap_servers)
        if (host, port) not in own
    ]
