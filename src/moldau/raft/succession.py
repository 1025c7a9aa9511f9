"""What comes after a leader, and after promises that were refused."""

from __future__ import annotations

from moldau.raft.core import Core
from moldau.raft.lost_leader import LostLeader
from moldau.raft.states import Follower, Prospective
from moldau.raft.types import NOBODY


class Succession:
    def __init__(self, core: Core) -> None:
        self._core = core

    def leader_gone(self, now_ms: float) -> None:
        """The leader's process has ended. The voters stand in the order of their ids."""
        core, state = self._core, self._core.state
        known = core.lost
        if not core.may_stand or core.leader_id == NOBODY or (known is not None and known.is_dead):
            return
        # The leader itself is not among those who stand before.
        rank = core.rank - (1 if core.leader_id in core.voters.ids and core.leader_id < core.local.id else 0)
        lost = LostLeader(core.leader_id, core.epoch, is_dead=True, rank=rank)
        if isinstance(state, Follower):
            core.lost_leader = lost
            state.has_fetched = False
            state.deadline = min(state.deadline, now_ms + lost.first_pause_ms)
        elif isinstance(state, Prospective):
            core.lost_leader = lost
            if state.leader_id in state.votes.unanswered:
                state.votes.record(state.leader_id, False)
            if state.votes.is_lost:
                self.promises_refused(now_ms)

    def leader_resigned(self, state: Follower, rank: int, pause_ms: int, now_ms: float) -> None:
        """The leader named its successors, and this node's place among them."""
        core = self._core
        core.lost_leader = LostLeader(state.leader_id, core.epoch, is_dead=False, rank=rank)
        state.has_fetched = False
        state.deadline = now_ms + pause_ms

    def promises_refused(self, now_ms: float) -> None:
        """Go on following the leader that the others still hear from, if there is one."""
        core, state = self._core, self._core.state
        if not isinstance(state, Prospective):
            return
        lost = core.lost
        if state.leader_id == NOBODY or core.named(state.leader_endpoints) is None:
            core.unattached(core.epoch, state.leader_id, now_ms)
        else:
            core.follower(core.epoch, state.leader_id, state.leader_endpoints, now_ms)
        if lost is not None and isinstance(core.state, Follower):
            core.state.deadline = now_ms + lost.next_pause_ms(core.settings.fetch_timeout_ms)
