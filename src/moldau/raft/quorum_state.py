"""The quorum state of a node: its epoch, its role in it, and the transitions between roles.

Every change of role is made here, and each discards the requests in flight. The part that must survive a
restart follows from the state (`election_state`); the driver stores it whenever it changes.
"""

from __future__ import annotations

import math

from moldau.base.ids import ZERO_UUID, Randomness
from moldau.raft.in_flight import InFlightRequests
from moldau.raft.local_log import LocalLog, LogView
from moldau.raft.settings import RaftSettings
from moldau.raft.states import (
    RANK_DELAY_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
    UnavailableLeader,
    Votes,
)
from moldau.raft.types import (
    NO_LEADER,
    NO_VOTE,
    UNKNOWN_OFFSET,
    ElectionState,
    RaftSafetyViolation,
    ReplicaKey,
    Role,
)
from moldau.raft.voters import STATIC, VoterEndpoint, VoterHistory, VoterSet, endpoint_named

#: Time a node that has just started looks for a leader before it sends pre-vote requests.
_LEADER_DISCOVERY_MS = 100
_ROLES = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}


class QuorumState:
    def __init__(
        self,
        settings: RaftSettings,
        log: LogView,
        stored: ElectionState,
        history: VoterHistory,
        randomness: Randomness,
        now_ms: float,
    ) -> None:
        self.settings = settings
        self.local = ReplicaKey(settings.node_id, settings.directory_id)
        self.log = LocalLog(log)
        self.history = history
        self.in_flight = InFlightRequests(settings.retry_backoff_ms, settings.request_timeout_ms)
        #: The last leader that resigned or whose process exited; see `unavailable_leader`.
        self.last_unavailable_leader: UnavailableLeader | None = None
        self._randomness = randomness
        self.epoch = max(stored.leader_epoch, log.end.epoch)
        self.state: State = self._initial_state(stored, now_ms)

    def _initial_state(self, stored: ElectionState, now_ms: float) -> State:
        """Return the state after a start.

        If the stored epoch is below the log's, the file was lost or is an old copy: it is no evidence of the
        current epoch.
        """
        if stored.leader_epoch < self.epoch:
            return Unattached(self._discovery_deadline(now_ms))
        voted = None if stored.voted_id < 0 else ReplicaKey(stored.voted_id, stored.voted_directory_id)
        if stored.leader_id == self.local.id:
            return Resigned(self._election_deadline(now_ms), self._other_voters())
        if voted is not None and is_vote_for(voted, self.local) and self.can_become_candidate:
            return Candidate(self._election_deadline(now_ms), self._new_votes())
        endpoints = self.voters.endpoints(stored.leader_id)
        if stored.leader_id >= 0 and self.quorum_endpoint(endpoints) is not None:
            return self._follower(stored.leader_id, endpoints, voted, now_ms)
        return Unattached(self._discovery_deadline(now_ms), stored.leader_id, voted)

    def _discovery_deadline(self, now_ms: float) -> float:
        """Leave time to find a leader. If none exists, all nodes may be starting, and pre-votes are cheap."""
        longest_ms = self.settings.election_timeout_ms
        return now_ms + min(_LEADER_DISCOVERY_MS + self.rank * RANK_DELAY_MS, longest_ms)

    # Voters.

    @property
    def voters(self) -> VoterSet:
        """The latest voter set, committed or not."""
        return self.history.voters

    @property
    def kraft_version(self) -> int:
        return self.history.kraft_version

    @property
    def is_voter(self) -> bool:
        return self.settings.can_vote and self.voters.has(*self.local)

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.voters.voters) == 1

    @property
    def can_become_candidate(self) -> bool:
        """Whether this node may start an election: a voter, or a node whose own removal is in its log and not
        known to be committed. It may be the only node with that record, so that no other can be elected."""
        offset = self.history.voters_offset
        is_leaving = (
            offset is not None
            and offset >= self.log.committed
            and self.history.previous_voters.has(*self.local)
        )
        return self.is_voter or (self.settings.can_vote and is_leaving)

    @property
    def rank(self) -> int:
        """The number of voters with smaller ids. They start an election before this node does."""
        return len([each for each in self.voters.ids if each < self.local.id])

    def _other_voters(self) -> list[int]:
        return [voter_id for voter_id in self.voters.ids if voter_id != self.local.id]

    def needs_voter_update(self) -> bool:
        """Whether the voter set has outdated endpoints or versions of this node."""
        local = self.settings.local_voter
        known = self.voters.get(local.id)
        return (
            known is not None
            and known.is_replica(local.id, local.directory_id)
            and known._replace(endpoints=tuple(sorted(known.endpoints)))
            != local._replace(endpoints=tuple(sorted(local.endpoints)))
        )

    # Role and leader.

    @property
    def role(self) -> Role:
        return _ROLES[type(self.state)]

    @property
    def leader(self) -> Leader | None:
        """The leader's state if this node is the leader."""
        return self.state if isinstance(self.state, Leader) else None

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state, Leader)

    @property
    def leader_id(self) -> int:
        """The leader of the epoch; `NO_LEADER` if unknown. A resigned leader is still reported."""
        state = self.state
        if isinstance(state, Leader | Resigned):
            return self.local.id
        return NO_LEADER if isinstance(state, Candidate) else state.leader_id

    @property
    def leader_endpoints(self) -> tuple[VoterEndpoint, ...]:
        state = self.state
        if isinstance(state, Leader | Resigned):
            return self.settings.endpoints
        return state.leader_endpoints if isinstance(state, Follower | Prospective) else ()

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        return self.quorum_endpoint(self.leader_endpoints)

    def quorum_endpoint(self, endpoints: tuple[VoterEndpoint, ...]) -> VoterEndpoint | None:
        """Return the endpoint of the listener that the quorum uses."""
        return endpoint_named(endpoints, self.settings.listener)

    @property
    def unavailable_leader(self) -> UnavailableLeader | None:
        """The current leader, if it has resigned or its process has exited."""
        last = self.last_unavailable_leader
        is_current = last is not None and (last.id, last.epoch) == (self.leader_id, self.epoch)
        return last if is_current else None

    @property
    def epoch_start_voters(self) -> VoterSet | None:
        """The voter set that a new leader of a dynamic quorum writes after its LeaderChange record, with a
        KRaftVersionRecord: when the voters are not in the log yet, or its own endpoints have changed."""
        if not self.is_leader or self.kraft_version == STATIC:
            return None
        if self.history.voters_offset != -1 and not self.needs_voter_update():
            return None
        return self.voters.with_voter(self.settings.local_voter)

    @property
    def high_watermark(self) -> int:
        """The high watermark, or -1 while it is unknown."""
        return self.log.high_watermark

    @property
    def election_state(self) -> ElectionState:
        """The state that must survive a restart."""
        return ElectionState(self.leader_id, self.epoch, *(self._voted or ReplicaKey(NO_VOTE)))

    @property
    def _voted(self) -> ReplicaKey | None:
        state = self.state
        if isinstance(state, Candidate):
            return self.local
        return None if isinstance(state, Leader | Resigned) else state.voted

    # Transitions.

    def _transition_to(self, state: State) -> None:
        self.state = state
        self.in_flight.reset()

    def _new_votes(self) -> Votes:
        return Votes.start(self.voters.voters, self.local.id)

    def _election_deadline(self, now_ms: float) -> float:
        """Randomized, so that candidates seldom split the vote (Raft §5.2)."""
        timeout_ms = self.settings.election_timeout_ms
        return now_ms + timeout_ms + (self._randomness.randrange(0, timeout_ms) if timeout_ms else 0)

    def transition_to_unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        """A running election deadline is kept, so that other nodes' elections cannot postpone ours."""
        state = self.state
        voted = self._voted if epoch == self.epoch else None
        if isinstance(state, Candidate | Unattached | Resigned) or (
            isinstance(state, Prospective) and not state.votes.is_lost
        ):
            deadline = max(state.deadline, now_ms)
        else:
            deadline = math.inf
        if self.can_become_candidate and deadline == math.inf:
            deadline = self._election_deadline(now_ms)
        self.epoch = epoch
        self._transition_to(Unattached(deadline, leader_id, voted))

    def record_vote(self, candidate: ReplicaKey, now_ms: float) -> None:
        """Vote for a candidate, and give its election a full election timeout."""
        state = self.state
        if not isinstance(state, Unattached | Prospective) or state.voted is not None:
            return
        state.voted = candidate
        state.deadline = self._election_deadline(now_ms)
        if isinstance(state, Prospective):
            state.votes = self._new_votes()

    def transition_to_follower(
        self, epoch: int, leader_id: int, endpoints: tuple[VoterEndpoint, ...], now_ms: float
    ) -> None:
        if leader_id == self.local.id:
            raise RaftSafetyViolation(
                f"a peer reports node {leader_id}, this node, as the leader of epoch {epoch} it never won"
            )
        if self.quorum_endpoint(endpoints) is None:
            self.transition_to_unattached(epoch, leader_id, now_ms)
            return
        voted = self._voted if epoch == self.epoch else None
        self.epoch = epoch
        self._transition_to(self._follower(leader_id, endpoints, voted, now_ms))

    def _follower(
        self, leader_id: int, endpoints: tuple[VoterEndpoint, ...], voted: ReplicaKey | None, now_ms: float
    ) -> Follower:
        deadline = now_ms + self.settings.fetch_timeout_ms
        return Follower(deadline, leader_id, endpoints, deadline, voted)

    def transition_to_prospective(self, now_ms: float) -> None:
        votes = self._new_votes()
        if self.unavailable_leader is not None and self.unavailable_leader.has_exited:
            votes.record(self.leader_id, False)
        self._transition_to(
            Prospective(
                self._election_deadline(now_ms), votes, self.leader_id, self.leader_endpoints, self._voted
            )
        )
        if votes.is_won:
            self.transition_to_candidate(now_ms)

    def transition_to_candidate(self, now_ms: float) -> None:
        self.epoch += 1
        votes = self._new_votes()
        self._transition_to(Candidate(self._election_deadline(now_ms), votes))
        if votes.is_won:
            self.transition_to_leader(now_ms)

    def transition_to_leader(self, now_ms: float) -> None:
        state = self.state
        if not isinstance(state, Candidate) or not state.votes.is_won:
            raise RaftSafetyViolation(
                f"node {self.local.id} would lead epoch {self.epoch} without a majority of votes"
            )
        self.log.high_watermark = UNKNOWN_OFFSET
        leader = Leader(
            self.settings.local_voter,
            self.voters,
            self.log.view.end,
            state.votes.granting,
            self.settings.fetch_timeout_ms,
            now_ms,
        )
        leader.update_local_end(self.log.durable_end)
        self._transition_to(leader)

    def transition_to_resigned(self, now_ms: float) -> None:
        """Resign if this node is the leader."""
        if isinstance(self.state, Leader):
            successors = self.state.successors()
            self.log.high_watermark = UNKNOWN_OFFSET
            self._transition_to(Resigned(self._election_deadline(now_ms), self._other_voters(), successors))


def is_vote_for(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    """Whether a stored vote is for the candidate; a vote of a static quorum has no directory id."""
    return voted.id == candidate.id and voted.directory_id in (ZERO_UUID, candidate.directory_id)
