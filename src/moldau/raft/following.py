"""How a follower takes over the leader's log: append, cut off what differs, or begin anew from a snapshot."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.fetch import PartitionData
from moldau.protocol.messages.fetch_snapshot import ResponsePartitionSnapshot
from moldau.protocol.schema import Buffer, Records
from moldau.raft.core import Core
from moldau.raft.errors import QuorumBroken
from moldau.raft.states import Follower
from moldau.raft.types import Append, FollowerWork, OffsetAndEpoch, SnapshotChunk, Truncate
from moldau.raft.voters import VoterSet


class Following:
    def __init__(self, core: Core) -> None:
        self._core = core

    # What the leader answers: whether it is of use, and what is to be done.

    def take_records(
        self, state: Follower, answer: PartitionData, now_ms: float
    ) -> tuple[bool, FollowerWork | None]:
        diverging, snapshot = answer.diverging_epoch, answer.snapshot_id
        if diverging.epoch >= 0:
            end_offset = self._truncation(OffsetAndEpoch(diverging.end_offset, diverging.epoch))
            self._core.is_busy = True
            self.heard_from_leader(state, now_ms)
            return True, Truncate(end_offset)
        if snapshot.epoch >= 0 or snapshot.end_offset >= 0:
            if snapshot.epoch < 0 or snapshot.end_offset < 0:
                return False, None
            self._check_committed(snapshot.end_offset, f"the leader's snapshot ends at {snapshot.end_offset}")
            state.snapshot = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)
            state.position = 0
            self.heard_from_leader(state, now_ms)
            return True, None
        self.heard_from_leader(state, now_ms)
        state.leader_high_watermark = answer.high_watermark
        records = _one_buffer(answer.records)
        if not records:
            self._follow_high_watermark(state)
            return True, None
        self._core.is_busy = True
        return True, Append(records, self._core.epoch)

    def _truncation(self, diverging: OffsetAndEpoch) -> int:
        """Where the own log is to be cut: the end of the leader's epoch in the shorter of both logs."""
        log = self._core.log
        if diverging.epoch == 0:
            end_offset = min(diverging.offset, log.end.offset)
        else:
            own = log.end_of_epoch(diverging.epoch)
            end_offset = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        message = f"the leader's log ends epoch {diverging.epoch} at offset {diverging.offset}"
        self._check_committed(min(end_offset, diverging.offset), message)
        return end_offset

    def _check_committed(self, end_offset: int, message: str) -> None:
        if end_offset < self._core.committed:
            raise QuorumBroken(
                f"{message}, and everything before offset {self._core.committed} is committed here"
            )

    def take_chunk(
        self, state: Follower, answer: ResponsePartitionSnapshot, now_ms: float
    ) -> tuple[bool, FollowerWork | None]:
        snapshot = OffsetAndEpoch(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        if answer.error_code == ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot) < 0:
            # A newer one has taken its place; the next fetch says which.
            state.snapshot = None
            self.heard_from_leader(state, now_ms)
            return True, None
        records = _one_buffer(answer.unaligned_records)
        is_next = (snapshot, answer.position) == (state.snapshot, state.position)
        if answer.error_code != ErrorCode.NONE or not is_next or not records:
            state.snapshot = None
            return False, None
        self._core.is_busy = True
        state.storing = len(records)
        self.heard_from_leader(state, now_ms)
        is_last = state.position + len(records) >= answer.size
        return True, SnapshotChunk(snapshot, state.position, records, is_last)

    def heard_from_leader(self, state: Follower, now_ms: float) -> None:
        state.deadline = now_ms + self._core.settings.fetch_timeout_ms
        state.has_fetched = True
        self._core.lost_leader = None

    # What the driver has done. The role may be another one by then.

    def work_done(self, now_ms: float) -> Follower | None:
        """What the own disk took is not the leader's fault."""
        core, state = self._core, self._core.state
        core.is_busy = False
        if not isinstance(state, Follower):
            return None
        if core.lost is None:
            state.deadline = max(state.deadline, now_ms + core.settings.fetch_timeout_ms)
        return state

    def appended(self, now_ms: float) -> None:
        if not self._core.is_busy:
            return
        state = self.work_done(now_ms)
        if state is not None:
            self._follow_high_watermark(state)

    def chunk_stored(self, now_ms: float) -> None:
        state = self.work_done(now_ms)
        if state is not None:
            state.position, state.storing = state.position + state.storing, 0

    def snapshot_refused(self, now_ms: float) -> None:
        state = self.work_done(now_ms)
        if state is not None:
            state.snapshot = None

    def snapshot_loaded(self, kraft_version: int, voters: VoterSet | None, now_ms: float) -> None:
        core = self._core
        core.history.clear()
        core.history.add(core.log.end.offset - 1, kraft_version=kraft_version, voters=voters)
        core.commit_to(core.log.end.offset)
        state = self.work_done(now_ms)
        if state is not None:
            state.snapshot = None

    def _follow_high_watermark(self, state: Follower) -> None:
        if state.leader_high_watermark >= 0:
            self._core.commit_to(min(state.leader_high_watermark, self._core.durable_end))


def _one_buffer(records: Records | None) -> Buffer:
    if records is None:
        return b""
    return records if isinstance(records, bytes | bytearray | memoryview) else b"".join(records)
