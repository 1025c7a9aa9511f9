"""A node's standing in the quorum, as others may look at it."""

from __future__ import annotations

from moldau.raft.core import Core
from moldau.raft.leader import Leader
from moldau.raft.states import Candidate, Follower, Prospective, Resigned, Unattached
from moldau.raft.types import QuorumView, ReplicaView, Role
from moldau.raft.voter_changes import VoterChanges
from moldau.raft.voters import STATIC, VoterEndpoint, VoterSet

_ROLES = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}


class Standing:
    _core: Core
    _changes: VoterChanges

    @property
    def role(self) -> Role:
        return _ROLES[type(self._core.state)]

    @property
    def is_leader(self) -> bool:
        return isinstance(self._core.state, Leader)

    @property
    def epoch(self) -> int:
        return self._core.epoch

    @property
    def leader_id(self) -> int:
        """`NOBODY` when it is not known. A leader that resigned is still named."""
        return self._core.leader_id

    @property
    def leader_endpoint(self) -> VoterEndpoint | None:
        return self._core.named(self._core.leader_endpoints)

    @property
    def is_voter(self) -> bool:
        return self._core.is_voter

    @property
    def voters(self) -> VoterSet:
        """The latest, committed or not."""
        return self._core.voters

    @property
    def kraft_version(self) -> int:
        return self._core.history.kraft_version

    @property
    def high_watermark(self) -> int:
        """-1 while it is not known, which is so again for every new leader until a record of its own epoch is
        committed; what was committed before stays so."""
        return self._core.high_watermark

    @property
    def epoch_start_offset(self) -> int:
        """A leader's first offset (its LeaderChange record); -1 for others."""
        state = self._core.state
        return state.epoch_start_offset if isinstance(state, Leader) else -1

    def is_overdue(self, now_ms: float) -> bool:
        """A leader that has not heard from a majority for so long that it must resign; it does when time is
        passed to it (`tick`)."""
        state = self._core.state
        deadline = state.check_deadline if isinstance(state, Leader) else None
        return deadline is not None and now_ms >= deadline

    @property
    def granting_voters(self) -> list[int]:
        """Who voted for this leader, for its LeaderChange record."""
        state = self._core.state
        return sorted(state.granting) if isinstance(state, Leader) else []

    @property
    def epoch_start_voters(self) -> VoterSet | None:
        """A new leader of a dynamic quorum writes KRaftVersion and Voters records behind its LeaderChange
        when the voters are not in the log yet or its own endpoints have changed; None: not needed."""
        core = self._core
        if not self.is_leader or core.history.kraft_version == STATIC:
            return None
        local = core.settings.local_voter
        if core.history.voters_offset != -1 and not self._changes.needs_update(local):
            return None
        return core.voters.with_voter(local)

    def describe(self, now_ms: float) -> QuorumView | None:
        """None: only the leader knows."""
        core, state = self._core, self._core.state
        if not isinstance(state, Leader):
            return None
        return QuorumView(
            core.local.id,
            core.epoch,
            state.high_watermark,
            [self._seen_now(progress.view(), now_ms) for progress in state.voters.values()],
            [self._seen_now(view, now_ms) for view in state.observer_views(now_ms)],
        )

    def _seen_now(self, view: ReplicaView, now_ms: float) -> ReplicaView:
        """The leader itself is always there."""
        if view.key.id != self._core.local.id:
            return view
        return view._replace(last_fetch_ms=now_ms, last_caught_up_ms=now_ms)
