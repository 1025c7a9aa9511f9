"""The states of a quorum member and the data that each keeps (KIP-595; Prospective: KIP-996).

`deadline` is the time at which a state ends if no message ends it before: an election times out, or a leader
has not been heard from for the fetch timeout. It has no effect on observers, which never start an election.

State changes are made by `quorum_state`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.raft.types import NO_LEADER, UNKNOWN_OFFSET, OffsetAndEpoch, ReplicaKey, ReplicaView
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet

#: An observer that has not fetched for this long is no longer reported.
_OBSERVER_SESSION_MS = 300_000
#: An observer must have fetched within this time to be added as a voter.
_CAUGHT_UP_MS = 3_600_000
#: Time a voter waits for each voter of a lower rank before it starts an election itself.
RANK_DELAY_MS = 40
#: The first backoff after an election to replace an unavailable leader was lost.
_ELECTION_BACKOFF_MS = 25


@dataclass(slots=True)
class Votes:
    """The votes or pre-votes collected in an election, by voter id; None until the voter responds."""

    responses: dict[int, bool | None]

    @classmethod
    def start(cls, voters: Iterable[Voter], node_id: int) -> Votes:
        """Start an election in which this node votes for itself."""
        return cls({voter.id: True if voter.id == node_id else None for voter in voters})

    def record(self, voter_id: int, granted: bool) -> None:
        if voter_id in self.responses:
            self.responses[voter_id] = granted

    @property
    def granting(self) -> list[int]:
        return [voter_id for voter_id, granted in self.responses.items() if granted]

    @property
    def unanswered(self) -> list[int]:
        return [voter_id for voter_id, granted in self.responses.items() if granted is None]

    @property
    def is_won(self) -> bool:
        return len(self.granting) >= self._majority

    @property
    def is_lost(self) -> bool:
        return len(self.granting) + len(self.unanswered) < self._majority

    @property
    def _majority(self) -> int:
        return len(self.responses) // 2 + 1


@dataclass(slots=True)
class Unattached:
    """Does not know the leader of the epoch, or its endpoint. Sends Fetch to discover it, and may vote."""

    deadline: float
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class Prospective:
    """Collects pre-votes (KIP-996) before it starts an election with a new epoch."""

    deadline: float
    votes: Votes
    leader_id: int = NO_LEADER
    leader_endpoints: tuple[VoterEndpoint, ...] = ()
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class Candidate:
    """Has voted for itself in a new epoch and collects votes (Raft §5.2)."""

    deadline: float
    votes: Votes


@dataclass(slots=True)
class Follower:
    """Fetches the log from the leader of the epoch."""

    deadline: float
    leader_id: int
    leader_endpoints: tuple[VoterEndpoint, ...]
    #: The time of the next check whether the leader has this voter's current endpoints and versions.
    update_voter_deadline: float
    voted: ReplicaKey | None = None
    #: The leader has answered a fetch, so this node rejects pre-votes of others.
    has_fetched: bool = False
    #: The leader of a static quorum has this voter's directory id and endpoints (UpdateRaftVoter).
    has_updated_leader: bool = False
    #: The leader's high watermark in the fetch response that is being appended.
    leader_high_watermark: int = UNKNOWN_OFFSET
    #: The snapshot being fetched, the bytes of it that are written, and the bytes that are being written.
    snapshot: OffsetAndEpoch | None = None
    position: int = 0
    pending_bytes: int = 0


@dataclass(slots=True)
class UnavailableLeader:
    """A leader that will not lead again in its epoch: its process has exited, or it has resigned.

    Its followers do not wait for the fetch timeout. They send pre-vote requests at once, one after another by
    rank so that they do not compete, and again after a short backoff if they are rejected, because the other
    voters may not know yet. Only the pre-votes are early; who may be elected does not change.
    """

    id: int
    epoch: int
    #: It cannot vote. A leader that has resigned still grants pre-votes.
    has_exited: bool
    #: The number of voters that start an election before this node.
    rank: int
    attempts: int = 0

    @property
    def first_delay_ms(self) -> int:
        return self.rank * RANK_DELAY_MS

    def next_delay_ms(self, max_ms: int) -> int:
        """Return the delay before the next attempt; the backoff doubles with each rejected pre-vote."""
        backoff_ms = min(_ELECTION_BACKOFF_MS << min(self.attempts, 16), max_ms)
        self.attempts += 1
        return backoff_ms + self.rank * RANK_DELAY_MS


@dataclass(slots=True)
class Resigned:
    """Was the leader of this epoch and sends EndQuorumEpoch until each voter has acknowledged it."""

    deadline: float
    unacknowledged: list[int]
    successors: list[ReplicaKey] = field(default_factory=list)


@dataclass(slots=True)
class ReplicaState:
    """The leader's view of one replica's progress."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: float | None = None
    last_caught_up_ms: float | None = None
    #: The leader's log end offset at the replica's last fetch.
    leader_end_offset: int = UNKNOWN_OFFSET

    def matches(self, key: ReplicaKey) -> bool:
        return Voter(*self.key).is_replica(*key)

    def record_fetch(self, offset: int, leader_end_offset: int, now_ms: float) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif 0 < self.leader_end_offset <= offset:
            self.last_caught_up_ms = self.last_fetch_ms
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms
        self.end_offset = offset

    def view(self) -> ReplicaView:
        return ReplicaView(
            self.key, self.endpoints, self.end_offset, self.last_fetch_ms, self.last_caught_up_ms
        )


class Leader:
    """Tracks the progress of all replicas, and from it the high watermark.

    The high watermark is the offset that a majority of voters has reached. It advances only past the leader's
    first record, because records of earlier epochs are committed only by committing a record of the current
    epoch after them (Raft §5.4.2).

    If no majority of voters has fetched within one and a half fetch timeouts, another leader may exist, and
    this one must resign (check quorum).
    """

    def __init__(
        self,
        local: Voter,
        voters: VoterSet,
        start: OffsetAndEpoch,
        granting_voters: list[int],
        fetch_timeout_ms: int,
        now_ms: float,
    ) -> None:
        self.local = ReplicaKey(local.id, local.directory_id)
        #: The offset of this epoch's LeaderChange record.
        self.epoch_start_offset = start.offset
        #: The voters that elected this leader, for its LeaderChange record.
        self.granting_voters = sorted(granting_voters)
        self.high_watermark = UNKNOWN_OFFSET
        self.voters: dict[int, ReplicaState] = {}
        self.observers: dict[ReplicaKey, ReplicaState] = {}
        self._check_quorum_timeout_ms = fetch_timeout_ms * 1.5
        self._begin_epoch_interval_ms = fetch_timeout_ms / 2
        self._check_quorum_deadline = now_ms + self._check_quorum_timeout_ms
        self._fetched_voters: set[int] = set()
        #: The time of the next BeginQuorumEpoch to voters that do not fetch.
        self.begin_epoch_deadline = now_ms
        self.change_voters(voters)

    # Voters and observers.

    def change_voters(self, voters: VoterSet) -> None:
        """Replace the voter set; replicas that become voters or observers keep their progress."""
        before = self.voters
        self.voters = {}
        for voter in voters.voters:
            key = ReplicaKey(voter.id, voter.directory_id)
            replica = self._find(key, before) or ReplicaState(key)
            self.observers.pop(replica.key, None)
            self.observers.pop(key, None)
            replica.key, replica.endpoints = key, voter.endpoints
            self.voters[voter.id] = replica
        for replica in before.values():
            if self.voters.get(replica.key.id) is not replica:
                replica.endpoints = ()
                self.observers.setdefault(replica.key, replica)

    def _find(self, key: ReplicaKey, voters: dict[int, ReplicaState]) -> ReplicaState | None:
        known = voters.get(key.id)
        return known if known is not None and known.matches(key) else self.observers.get(key)

    def is_voter(self, key: ReplicaKey) -> bool:
        known = self.voters.get(key.id)
        return known is not None and known.matches(key)

    def replica(self, key: ReplicaKey) -> ReplicaState:
        """Return a replica's state, adding it as an observer if it is unknown."""
        found = self._find(key, self.voters)
        return found if found is not None else self.observers.setdefault(key, ReplicaState(key))

    # Progress.

    def update_local_end(self, end_offset: int) -> bool:
        """Record that the leader's own log is durable up to `end_offset`; whether the high watermark rose."""
        local = self.replica(self.local)
        local.end_offset = max(local.end_offset, end_offset)
        return self._advance_high_watermark()

    def record_fetch(self, key: ReplicaKey, offset: int, now_ms: float) -> bool:
        """Record that a replica has every record before `offset`; whether the high watermark rose."""
        if key.id < 0:
            return False
        self.replica(key).record_fetch(offset, self.replica(self.local).end_offset, now_ms)
        self.record_contact(key, now_ms)
        return self.is_voter(key) and self._advance_high_watermark()

    def _advance_high_watermark(self) -> bool:
        end_offsets = sorted((replica.end_offset for replica in self.voters.values()), reverse=True)
        majority_offset = end_offsets[len(end_offsets) // 2]
        if majority_offset <= self.epoch_start_offset or majority_offset <= self.high_watermark:
            return False
        self.high_watermark = majority_offset
        return True

    def is_caught_up(self, key: ReplicaKey, now_ms: float) -> bool:
        """Whether an observer has reached the end of the log and still fetches."""
        replica = self.observers.get(key)
        return (
            replica is not None
            and replica.last_caught_up_ms is not None
            and replica.last_fetch_ms is not None
            and replica.last_fetch_ms > now_ms - _CAUGHT_UP_MS
        )

    def successors(self) -> list[ReplicaKey]:
        """The other voters, the one with the longest log first (EndQuorumEpoch's preferred candidates)."""
        others = [replica for replica in self.voters.values() if not replica.matches(self.local)]
        return [each.key for each in sorted(others, key=lambda each: (-each.end_offset, each.key))]

    def voter_views(self, now_ms: float) -> list[ReplicaView]:
        return [self._view(replica, now_ms) for replica in self.voters.values()]

    def observer_views(self, now_ms: float) -> list[ReplicaView]:
        """The observers that still fetch; others are forgotten."""
        for key, replica in list(self.observers.items()):
            idle = replica.last_fetch_ms is None or now_ms - replica.last_fetch_ms >= _OBSERVER_SESSION_MS
            if idle and key != self.local:
                del self.observers[key]
        return [self._view(replica, now_ms) for replica in self.observers.values()]

    def _view(self, replica: ReplicaState, now_ms: float) -> ReplicaView:
        """The leader does not fetch from itself and is always caught up."""
        view = replica.view()
        if view.key.id != self.local.id:
            return view
        return view._replace(last_fetch_ms=now_ms, last_caught_up_ms=now_ms)

    # Check quorum.

    def record_contact(self, key: ReplicaKey, now_ms: float) -> None:
        """Extend the check-quorum deadline once a majority of voters has been in contact."""
        if self.is_voter(key):
            self._fetched_voters.add(key.id)
        majority = len(self.voters) // 2 + 1
        if self.local.id in self.voters:
            majority -= 1
        if len(self._fetched_voters) >= majority:
            self._fetched_voters.clear()
            self._check_quorum_deadline = now_ms + self._check_quorum_timeout_ms

    @property
    def check_quorum_deadline(self) -> float | None:
        """The time at which the leader resigns; None for the only voter."""
        return None if list(self.voters) == [self.local.id] else self._check_quorum_deadline

    def is_past_check_quorum(self, now_ms: float) -> bool:
        """Whether this leader must resign, which it does at the next tick."""
        deadline = self.check_quorum_deadline
        return deadline is not None and now_ms >= deadline

    def voters_to_notify(self, now_ms: float) -> list[ReplicaKey]:
        """Return the voters that have not fetched recently and may not know this leader; call it at
        `begin_epoch_deadline`."""
        interval_ms = self._begin_epoch_interval_ms
        self.begin_epoch_deadline = now_ms + interval_ms
        return [
            replica.key
            for voter_id, replica in self.voters.items()
            if voter_id != self.local.id
            and (replica.last_fetch_ms is None or now_ms - replica.last_fetch_ms >= interval_ms)
        ]


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned
