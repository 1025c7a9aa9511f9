"""What a node is in the quorum, and what it remembers while it is that; the leader has its own file.

`deadline` is the time when the state ends if nothing happens: an election is lost, a leader is not heard of.
Whoever does not vote never loses patience: its deadline does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.base.ids import ZERO_UUID
from moldau.raft.leader import Leader
from moldau.raft.types import NOBODY, OffsetAndEpoch, ReplicaKey
from moldau.raft.voters import Voter, VoterEndpoint


@dataclass(slots=True)
class Votes:
    """Votes, or promises of votes, that a node collects. None: not answered yet."""

    answers: dict[int, bool | None]

    @classmethod
    def begin(cls, voters: Iterable[Voter], node_id: int) -> Votes:
        """Everybody votes for himself."""
        return cls({voter.id: True if voter.id == node_id else None for voter in voters})

    def record(self, voter_id: int, granted: bool) -> None:
        if voter_id in self.answers:
            self.answers[voter_id] = granted

    @property
    def granting(self) -> list[int]:
        return [voter_id for voter_id, granted in self.answers.items() if granted]

    @property
    def unanswered(self) -> list[int]:
        return [voter_id for voter_id, granted in self.answers.items() if granted is None]

    @property
    def is_won(self) -> bool:
        return len(self.granting) >= self._majority

    @property
    def is_lost(self) -> bool:
        return len(self.granting) + len(self.unanswered) < self._majority

    @property
    def _majority(self) -> int:
        return len(self.answers) // 2 + 1


@dataclass(slots=True)
class Unattached:
    """Knows no leader, or not where it is. Asks around, and votes."""

    deadline: float
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether the others would vote for it (KIP-996), before it disturbs them with a new epoch."""

    deadline: float
    votes: Votes
    leader_id: int = NOBODY
    leader_endpoints: tuple[VoterEndpoint, ...] = ()
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class Candidate:
    deadline: float
    votes: Votes


@dataclass(slots=True)
class Follower:
    deadline: float
    leader_id: int
    leader_endpoints: tuple[VoterEndpoint, ...]
    #: When it is time to look whether the leader knows this voter as it is.
    update_deadline: float
    voted: ReplicaKey | None = None
    #: Has heard from the leader, so it gives nobody else hope.
    has_fetched: bool = False
    #: The leader of a static quorum knows this voter's directory and endpoints.
    has_told_leader: bool = False
    #: What the leader's high watermark was in the answer that is being appended.
    leader_high_watermark: int = -1
    #: The snapshot that is being fetched, how much of it is there, and how much is being stored.
    snapshot: OffsetAndEpoch | None = None
    position: int = 0
    storing: int = 0


@dataclass(slots=True)
class Resigned:
    """Led until now, and tells the others until they have heard it."""

    deadline: float
    unacknowledged: list[int]
    successors: list[ReplicaKey] = field(default_factory=list)


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def grants_vote(state: State, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
    """A promise costs nothing, so everybody gives it who does not hear from a leader; a vote is given once in
    an epoch, by those who know no leader. Nobody helps a log that is behind the own."""
    if isinstance(state, Leader):
        return False
    if pre_vote:
        return up_to_date and not (isinstance(state, Follower) and state.has_fetched)
    if not isinstance(state, Unattached | Prospective):
        return False
    if state.voted is not None:
        return is_vote_for(state.voted, candidate)
    return up_to_date and state.leader_id == NOBODY


def is_vote_for(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    """A vote that was stored without a directory (static quorums) is for the node."""
    return voted.id == candidate.id and voted.directory_id in (ZERO_UUID, candidate.directory_id)
