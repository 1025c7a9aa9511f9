"""What any message may teach: that there is a newer epoch, who leads it, and where."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.raft.core import Core
from moldau.raft.errors import QuorumBroken
from moldau.raft.types import NOBODY
from moldau.raft.voters import VoterEndpoint

_ASKED_THE_WRONG_ONE = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Learning:
    def __init__(self, core: Core) -> None:
        self._core = core

    def of_leader(
        self, leader_id: int, epoch: int, endpoints: tuple[VoterEndpoint, ...], now_ms: float
    ) -> None:
        """Somebody says who leads `epoch`, which is not older than ours (`NOBODY`: he does not know)."""
        core = self._core
        if epoch == core.epoch and leader_id == core.local.id:
            # A leader knows it. Anybody else is still taken for the leader it was, does not remember, and
            # will be a leader only of a later epoch.
            return
        self._check_consistent(leader_id, epoch)
        endpoints = endpoints or core.voters.endpoints(leader_id)
        if epoch > core.epoch:
            if leader_id in (NOBODY, core.local.id):
                core.unattached(epoch, NOBODY, now_ms)
            else:
                core.follower(epoch, leader_id, endpoints, now_ms)
        elif leader_id != NOBODY and (
            core.leader_id == NOBODY or len(endpoints) > len(core.leader_endpoints)
        ):
            core.follower(epoch, leader_id, endpoints, now_ms)

    def from_response(
        self,
        error: ErrorCode,
        leader_id: int,
        epoch: int,
        endpoints: tuple[VoterEndpoint, ...],
        now_ms: float,
    ) -> bool:
        """Whether this was all there was to the response."""
        core = self._core
        if epoch < core.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > core.epoch or error in _ASKED_THE_WRONG_ONE:
            self.of_leader(leader_id, epoch, endpoints, now_ms)
            return True
        if leader_id != NOBODY and core.leader_id == NOBODY:
            self.of_leader(leader_id, epoch, endpoints, now_ms)
            return error is not ErrorCode.NONE
        return error is ErrorCode.INVALID_VOTER_KEY

    def _check_consistent(self, leader_id: int, epoch: int) -> None:
        known = self._core.leader_id
        if epoch == self._core.epoch and NOBODY not in (leader_id, known) and leader_id != known:
            raise QuorumBroken(f"both node {known} and node {leader_id} lead epoch {epoch}")
