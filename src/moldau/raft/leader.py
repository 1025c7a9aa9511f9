"""What a leader knows of the others: how far their logs are, and so what is committed; who still fetches.

The high watermark is the offset that a majority of the voters has reached, and only counts once it is beyond
the leader's own first record: records of earlier epochs are committed by one of its own behind them.

A leader that a majority has not fetched from for one and a half times the fetch timeout must assume that
there is another one, and resigns.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.raft.types import OffsetAndEpoch, ReplicaKey, ReplicaView
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet

#: Observers that have not fetched for so long are forgotten, and replicas are too far behind to vote.
_OBSERVER_SESSION_MS = 300_000
_CAUGHT_UP_MS = 3_600_000
UNKNOWN = -1


@dataclass(slots=True)
class Progress:
    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    end_offset: int = UNKNOWN
    last_fetch_ms: float | None = None
    last_caught_up_ms: float | None = None
    #: Where the leader's log ended at the last fetch.
    leader_end_offset: int = UNKNOWN

    def is_replica(self, key: ReplicaKey) -> bool:
        return Voter(*self.key).is_replica(*key)

    def fetched(self, offset: int, leader_end_offset: int, now_ms: float) -> None:
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
    def __init__(
        self,
        local: Voter,
        voters: VoterSet,
        start: OffsetAndEpoch,
        granting: list[int],
        fetch_timeout_ms: int,
        now_ms: float,
    ) -> None:
        self.local = ReplicaKey(local.id, local.directory_id)
        self.local_endpoints = local.endpoints
        self.epoch_start_offset = start.offset
        self.granting = granting
        self.high_watermark = UNKNOWN
        self.voters: dict[int, Progress] = {}
        self.observers: dict[ReplicaKey, Progress] = {}
        self._check_timeout_ms = fetch_timeout_ms * 1.5
        self._begin_timeout_ms = fetch_timeout_ms / 2
        self._check_deadline = now_ms + self._check_timeout_ms
        self._fetched_voters: set[int] = set()
        self.begin_deadline = now_ms
        self.change_voters(voters)

    # Who votes.

    def change_voters(self, voters: VoterSet) -> None:
        """Whoever votes now or no longer keeps his progress."""
        before = self.voters
        self.voters = {}
        for voter in voters.voters:
            key = ReplicaKey(voter.id, voter.directory_id)
            progress = self._find(key, before) or Progress(key)
            self.observers.pop(progress.key, None)
            self.observers.pop(key, None)
            progress.key, progress.endpoints = key, voter.endpoints
            self.voters[voter.id] = progress
        for progress in before.values():
            if self.voters.get(progress.key.id) is not progress:
                progress.endpoints = ()
                self.observers.setdefault(progress.key, progress)

    def _find(self, key: ReplicaKey, voters: dict[int, Progress]) -> Progress | None:
        known = voters.get(key.id)
        return known if known is not None and known.is_replica(key) else self.observers.get(key)

    def is_voter(self, key: ReplicaKey) -> bool:
        known = self.voters.get(key.id)
        return known is not None and known.is_replica(key)

    def progress(self, key: ReplicaKey) -> Progress:
        found = self._find(key, self.voters)
        return found if found is not None else self.observers.setdefault(key, Progress(key))

    # How far they are.

    def wrote(self, end_offset: int) -> bool:
        """The leader's own log is on disk up to here; whether that commits something."""
        own = self.progress(self.local)
        own.end_offset = max(own.end_offset, end_offset)
        return self._commit()

    def fetched(self, key: ReplicaKey, offset: int, now_ms: float) -> bool:
        """A replica has everything before `offset`; whether that commits something."""
        if key.id < 0:
            return False
        self.progress(key).fetched(offset, self.progress(self.local).end_offset, now_ms)
        self.heard_from(key, now_ms)
        return self.is_voter(key) and self._commit()

    def _commit(self) -> bool:
        ends = sorted((progress.end_offset for progress in self.voters.values()), reverse=True)
        reached = ends[len(ends) // 2]
        if reached <= self.epoch_start_offset or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def is_caught_up(self, key: ReplicaKey, now_ms: float) -> bool:
        """An observer that has been at the end of the log, and still fetches."""
        progress = self.observers.get(key)
        return (
            progress is not None
            and progress.last_caught_up_ms is not None
            and progress.last_fetch_ms is not None
            and progress.last_fetch_ms > now_ms - _CAUGHT_UP_MS
        )

    def successors(self) -> list[ReplicaKey]:
        """The other voters, the longest log first."""
        others = [progress for progress in self.voters.values() if not progress.is_replica(self.local)]
        return [each.key for each in sorted(others, key=lambda each: (-each.end_offset, each.key))]

    def observer_views(self, now_ms: float) -> list[ReplicaView]:
        for key, progress in list(self.observers.items()):
            idle = progress.last_fetch_ms is None or now_ms - progress.last_fetch_ms >= _OBSERVER_SESSION_MS
            if idle and key != self.local:
                del self.observers[key]
        return [progress.view() for progress in self.observers.values()]

    # Whether they are there.

    def heard_from(self, key: ReplicaKey, now_ms: float) -> None:
        if self.is_voter(key):
            self._fetched_voters.add(key.id)
        majority = len(self.voters) // 2 + 1
        if self.local.id in self.voters:
            majority -= 1
        if len(self._fetched_voters) >= majority:
            self._fetched_voters.clear()
            self._check_deadline = now_ms + self._check_timeout_ms

    @property
    def check_deadline(self) -> float | None:
        """When to resign; None: there is nobody to hear from."""
        return None if list(self.voters) == [self.local.id] else self._check_deadline

    def voters_to_tell(self, now_ms: float) -> list[ReplicaKey]:
        """Voters that have not fetched for a while may not know who leads; asked for at `begin_deadline`."""
        self.begin_deadline = now_ms + self._begin_timeout_ms
        return [
            progress.key
            for voter_id, progress in self.voters.items()
            if voter_id != self.local.id
            and (progress.last_fetch_ms is None or now_ms - progress.last_fetch_ms >= self._begin_timeout_ms)
        ]
