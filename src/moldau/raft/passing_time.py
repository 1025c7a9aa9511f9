"""What a node of the quorum does of its own accord, by its role: whom it asks, and when it loses patience."""

from __future__ import annotations

from moldau.base.ids import Randomness
from moldau.protocol.schema import Message
from moldau.raft import asking
from moldau.raft.core import Core
from moldau.raft.leader import Leader
from moldau.raft.states import Candidate, Follower, Prospective, Resigned, State, Unattached
from moldau.raft.succession import Succession
from moldau.raft.types import NOBODY, Outgoing
from moldau.raft.voter_changes import VoterChanges
from moldau.raft.voters import STATIC, VoterEndpoint

#: Ids of bootstrap servers count down from here, as Kafka's do.
_FIRST_BOOTSTRAP_ID = -2


class PassingTime:
    def __init__(
        self, core: Core, succession: Succession, changes: VoterChanges, randomness: Randomness
    ) -> None:
        self._core = core
        self._succession = succession
        self._changes = changes
        self._randomness = randomness
        self._bootstrap = _bootstrap_servers(core)

    def pass_to(self, now_ms: float) -> None:
        """Do what is due, until nothing changes any more."""
        self._core.connections.expire(now_ms)
        state: State | None = None
        while state is not self._core.state:
            state = self._core.state
            self._act(state, now_ms)

    def _act(self, state: State, now_ms: float) -> None:
        match state:
            case Leader():
                self._lead(state, now_ms)
            case Candidate() | Prospective():
                self._stand(state, now_ms)
            case Follower():
                self._follow(state, now_ms)
            case Unattached():
                if self._core.may_stand and now_ms >= state.deadline:
                    self._core.prospective(now_ms)
                else:
                    self._fetch_from_bootstrap(now_ms)
            case Resigned():
                self._tell_resignation(state, now_ms)

    @property
    def next_deadline(self) -> float | None:
        state = self._core.state
        deadlines = [self._core.connections.next_deadline]
        if isinstance(state, Leader):
            deadlines = [state.check_deadline, state.begin_deadline, self._changes.deadline]
        elif not isinstance(state, Follower | Unattached) or self._core.may_stand:
            deadlines.append(state.deadline)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # By role.

    def _lead(self, state: Leader, now_ms: float) -> None:
        deadline = state.check_deadline
        if (deadline is not None and now_ms >= deadline) or self._changes.wants_to_resign:
            self._core.resigned(now_ms)
            return
        self._changes.expire(now_ms)
        if now_ms >= state.begin_deadline:
            for voter in state.voters_to_tell(now_ms):
                self._send_to_voter(voter.id, asking.begin_quorum_epoch_request(self._core, voter), now_ms)

    def _stand(self, state: Candidate | Prospective, now_ms: float) -> None:
        if now_ms >= state.deadline:
            if isinstance(state, Candidate):
                self._core.prospective(now_ms)
            else:
                self._succession.promises_refused(now_ms)
            return
        if state.votes.is_lost:
            return
        pre_vote = isinstance(state, Prospective)
        for voter_id in state.votes.unanswered:
            voter = self._core.voters.get(voter_id)
            if voter is not None and self._core.connections.is_ready(voter_id):
                request = asking.vote_request(self._core, voter, pre_vote=pre_vote)
                self._send_to_voter(voter_id, request, now_ms)

    def _follow(self, state: Follower, now_ms: float) -> None:
        if self._core.may_stand and now_ms >= state.deadline:
            self._core.prospective(now_ms)
            return
        if now_ms >= state.update_deadline:
            request = self._membership_request(state)
            if request is None or self._send_to_leader(state, request, now_ms):
                state.update_deadline = now_ms + self._core.settings.fetch_timeout_ms
        self._fetch(state, now_ms)

    def _membership_request(self, state: Follower) -> Message | None:
        """A voter that the leader knows differently tells it; a controller that wants to vote asks to."""
        core = self._core
        if core.is_voter:
            if core.history.kraft_version == STATIC:
                return None if state.has_told_leader else asking.update_voter_request(core)
            needs_update = self._changes.needs_update(core.settings.local_voter)
            return asking.update_voter_request(core) if needs_update else None
        if not (core.settings.can_vote and core.settings.auto_join) or core.history.kraft_version == STATIC:
            return None
        former = core.voters.get(core.local.id)
        if former is not None:
            # The same node with another directory, whose log is gone.
            return asking.remove_voter_request(core, former)
        return asking.add_voter_request(core)

    def _fetch(self, state: Follower, now_ms: float) -> None:
        if not self._core.may_fetch:
            return
        if self._core.connections.is_pausing(state.leader_id):
            self._fetch_from_bootstrap(now_ms)
        elif self._core.connections.is_ready(state.leader_id):
            snapshot = state.snapshot
            request: Message = (
                asking.fetch_request(self._core)
                if snapshot is None
                else asking.fetch_snapshot_request(self._core, snapshot, state)
            )
            self._send_to_leader(state, request, now_ms)

    def _tell_resignation(self, state: Resigned, now_ms: float) -> None:
        if now_ms >= state.deadline:
            self._core.unattached(self._core.epoch + 1, NOBODY, now_ms)
            return
        for voter_id in state.unacknowledged:
            if self._core.connections.is_ready(voter_id):
                request = asking.end_quorum_epoch_request(self._core, state)
                self._send_to_voter(voter_id, request, now_ms)

    # To whom.

    def _send_to_voter(self, voter_id: int, request: Message, now_ms: float) -> None:
        endpoint = self._core.voters.endpoint(voter_id, self._core.settings.listener)
        if endpoint is not None:
            self._core.connections.send(Outgoing(voter_id, endpoint, request), now_ms)

    def _send_to_leader(self, state: Follower, request: Message, now_ms: float) -> bool:
        endpoint = self._core.named(state.leader_endpoints)
        if endpoint is None:
            return False
        return self._core.connections.send(Outgoing(state.leader_id, endpoint, request), now_ms)

    def _fetch_from_bootstrap(self, now_ms: float) -> None:
        """Whoever answers knows who leads, or knows somebody who does."""
        servers, connections = self._bootstrap, self._core.connections
        if not servers or connections.any_in_flight or not self._core.may_fetch:
            return
        first = self._randomness.randrange(0, len(servers))
        for node_id, endpoint in servers[first:] + servers[:first]:
            if connections.is_ready(node_id):
                connections.send(Outgoing(node_id, endpoint, asking.fetch_request(self._core)), now_ms)
                return


def _bootstrap_servers(core: Core) -> list[tuple[int, VoterEndpoint]]:
    """Asking oneself tells nothing."""
    settings = core.settings
    own = {(endpoint.host, endpoint.port) for endpoint in settings.endpoints}
    if not settings.bootstrap_servers:
        found = [(voter.id, core.named(voter.endpoints)) for voter in core.history.static.voters]
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
