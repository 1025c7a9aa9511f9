"""A node's standing in the quorum, and how it goes from one to the next.

Every change of role goes through here. Each forgets the requests that were on their way. What must survive a
restart follows from the state (`election`), and the driver stores it whenever it has changed.
"""

from __future__ import annotations

import math

from moldau.base.ids import Randomness
from moldau.raft.connections import Connections
from moldau.raft.errors import QuorumBroken
from moldau.raft.leader import UNKNOWN, Leader
from moldau.raft.lost_leader import STEP_MS, LostLeader
from moldau.raft.settings import RaftSettings
from moldau.raft.states import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
    State,
    Unattached,
    Votes,
    is_vote_for,
)
from moldau.raft.types import NOBODY, Election, LogView, ReplicaKey
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import VoterEndpoint, VoterSet, endpoint_named

#: How long a node that has just started looks for a leader before it asks whether it could be one.
_LOOK_AROUND_MS = 100


class Core:
    def __init__(
        self,
        settings: RaftSettings,
        log: LogView,
        stored: Election,
        history: VoterHistory,
        randomness: Randomness,
        now_ms: float,
    ) -> None:
        self.settings = settings
        self.local = ReplicaKey(settings.node_id, settings.directory_id)
        self.log = log
        self.history = history
        self.connections = Connections(settings.retry_backoff_ms, settings.request_timeout_ms)
        self.high_watermark = UNKNOWN
        #: Nothing before this is ever taken back. A snapshot only holds what is committed.
        self.committed = max([log.start_offset, *(snapshot.offset for snapshot in log.snapshots)])
        self.durable_end = log.end.offset
        #: The driver appends, truncates or stores what a leader sent.
        self.is_busy = False
        self.lost_leader: LostLeader | None = None
        self._randomness = randomness
        self.epoch = max(stored.leader_epoch, log.end.epoch)
        self.state: State = self._first_state(stored, now_ms)

    def _first_state(self, stored: Election, now_ms: float) -> State:
        """A file that is behind the log was lost or is an old copy: then nothing is known of its epoch."""
        if stored.leader_epoch < self.epoch:
            return Unattached(self._first_deadline(now_ms))
        voted = None if stored.voted_id < 0 else ReplicaKey(stored.voted_id, stored.voted_directory_id)
        if stored.leader_id == self.local.id:
            return Resigned(self._election_deadline(now_ms), self._other_voters())
        if voted is not None and is_vote_for(voted, self.local) and self.may_stand:
            return Candidate(self._election_deadline(now_ms), self._votes())
        endpoints = self.voters.endpoints(stored.leader_id)
        if stored.leader_id >= 0 and self.named(endpoints) is not None:
            return self._follower(stored.leader_id, endpoints, voted, now_ms)
        return Unattached(self._first_deadline(now_ms), stored.leader_id, voted)

    def _first_deadline(self, now_ms: float) -> float:
        """Time to find a leader. If there is none, all may be starting just now; asking for promises disturbs
        nobody."""
        longest_ms = self.settings.election_timeout_ms
        return now_ms + min(_LOOK_AROUND_MS + self.rank * STEP_MS, longest_ms)

    # What is so.

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.settings.can_vote and self.voters.has(*self.local)

    @property
    def may_stand(self) -> bool:
        """Also whoever wrote down its own removal, as long as it does not know that committed: it may be the
        only one whose log has it, and then nobody else can be elected."""
        offset = self.history.voters_offset
        is_leaving = (
            offset is not None and offset >= self.committed and self.history.previous_voters.has(*self.local)
        )
        return self.is_voter or (self.settings.can_vote and is_leaving)

    @property
    def rank(self) -> int:
        """How many of the voters stand before this one when a leader is needed: those with smaller ids."""
        return len([each for each in self.voters.ids if each < self.local.id])

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.voters.voters) == 1

    @property
    def leader_id(self) -> int:
        state = self.state
        if isinstance(state, Leader | Resigned):
            return self.local.id
        return NOBODY if isinstance(state, Candidate) else state.leader_id

    @property
    def leader_endpoints(self) -> tuple[VoterEndpoint, ...]:
        state = self.state
        if isinstance(state, Leader | Resigned):
            return self.settings.endpoints
        return state.leader_endpoints if isinstance(state, Follower | Prospective) else ()

    @property
    def election(self) -> Election:
        """What must not be forgotten."""
        state = self.state
        if isinstance(state, Candidate):
            return Election(NOBODY, self.epoch, *self.local)
        voted = None if isinstance(state, Leader | Resigned) else state.voted
        return Election(self.leader_id, self.epoch, *(voted or ReplicaKey(NOBODY)))

    def named(self, endpoints: tuple[VoterEndpoint, ...]) -> VoterEndpoint | None:
        """The endpoint that controllers talk to."""
        return endpoint_named(endpoints, self.settings.listener)

    @property
    def lost(self) -> LostLeader | None:
        """Of the leader this node follows, if it will not come back as that."""
        lost = self.lost_leader
        is_this = lost is not None and (lost.id, lost.epoch) == (self.leader_id, self.epoch)
        return lost if is_this else None

    def _other_voters(self) -> list[int]:
        return [voter_id for voter_id in self.voters.ids if voter_id != self.local.id]

    def _votes(self) -> Votes:
        return Votes.begin(self.voters.voters, self.local.id)

    def _election_deadline(self, now_ms: float) -> float:
        timeout_ms = self.settings.election_timeout_ms
        return now_ms + timeout_ms + (self._randomness.randrange(0, timeout_ms) if timeout_ms else 0)

    @property
    def may_fetch(self) -> bool:
        """A fetch tells what this node has on disk, whatever its role was when it was written."""
        return not self.is_busy and self.log.end.offset <= self.durable_end

    def commit_to(self, high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, high_watermark)
        self.committed = max(self.committed, high_watermark)

    # From one role to the next.

    def _become(self, state: State) -> None:
        self.state = state
        self.connections.reset()

    def unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        """A deadline that runs goes on running: somebody else's elections must not keep us from our own."""
        state = self.state
        voted = self._voted if epoch == self.epoch else None
        if isinstance(state, Candidate | Unattached | Resigned) or (
            isinstance(state, Prospective) and not state.votes.is_lost
        ):
            deadline = max(state.deadline, now_ms)
        else:
            deadline = math.inf
        if self.may_stand and deadline == math.inf:
            deadline = self._election_deadline(now_ms)
        self.epoch = epoch
        self._become(Unattached(deadline, leader_id, voted))

    @property
    def _voted(self) -> ReplicaKey | None:
        state = self.state
        if isinstance(state, Candidate):
            return self.local
        return None if isinstance(state, Leader | Resigned) else state.voted

    def voted_for(self, candidate: ReplicaKey, now_ms: float) -> None:
        """Whoever voted waits a whole election for what comes of it."""
        state = self.state
        if not isinstance(state, Unattached | Prospective) or state.voted is not None:
            return
        state.voted = candidate
        state.deadline = self._election_deadline(now_ms)
        if isinstance(state, Prospective):
            state.votes = self._votes()

    def follower(
        self, epoch: int, leader_id: int, endpoints: tuple[VoterEndpoint, ...], now_ms: float
    ) -> None:
        if leader_id == self.local.id:
            raise QuorumBroken(
                f"node {leader_id} is told that it leads epoch {epoch}, and knows nothing of it"
            )
        if self.named(endpoints) is None:
            self.unattached(epoch, leader_id, now_ms)
            return
        voted = self._voted if epoch == self.epoch else None
        self.epoch = epoch
        self._become(self._follower(leader_id, endpoints, voted, now_ms))

    def _follower(
        self, leader_id: int, endpoints: tuple[VoterEndpoint, ...], voted: ReplicaKey | None, now_ms: float
    ) -> Follower:
        deadline = now_ms + self.settings.fetch_timeout_ms
        return Follower(deadline, leader_id, endpoints, deadline, voted)

    def prospective(self, now_ms: float) -> None:
        votes = self._votes()
        if self.lost is not None and self.lost.is_dead:
            votes.record(self.leader_id, False)
        self._become(
            Prospective(
                self._election_deadline(now_ms), votes, self.leader_id, self.leader_endpoints, self._voted
            )
        )
        if votes.is_won:
            self.candidate(now_ms)

    def candidate(self, now_ms: float) -> None:
        self.epoch += 1
        votes = self._votes()
        self._become(Candidate(self._election_deadline(now_ms), votes))
        if votes.is_won:
            self.lead(now_ms)

    def lead(self, now_ms: float) -> None:
        state = self.state
        if not isinstance(state, Candidate) or not state.votes.is_won:
            raise QuorumBroken(f"node {self.local.id} would lead epoch {self.epoch} without a majority")
        self.high_watermark = UNKNOWN
        leader = Leader(
            self.settings.local_voter,
            self.voters,
            self.log.end,
            state.votes.granting,
            self.settings.fetch_timeout_ms,
            now_ms,
        )
        leader.wrote(self.durable_end)
        self._become(leader)

    def resigned(self, now_ms: float) -> None:
        if isinstance(self.state, Leader):
            successors = self.state.successors()
            self.high_watermark = UNKNOWN
            self._become(Resigned(self._election_deadline(now_ms), self._other_voters(), successors))
