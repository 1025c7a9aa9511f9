"""How a node of the quorum serves the others: votes and epochs, the log, snapshots, changes of voters.

The rules answer; what they leave open is filled in here from the disk. A fetch that finds nothing new waits
until something is, or until its time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.base.errors import ErrorCode
from moldau.base.pool import Pool
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    RequestPartitionSnapshot,
    ResponsePartitionSnapshot,
)
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.quorum.member import Member
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import SnapshotId
from moldau.raft.types import FetchAnswer
from moldau.storage.disk.disk import Disk

_Serve = Callable[[Any, int], Awaitable[Message]]


class Serving:
    def __init__(
        self, member: Member, metadata_log: MetadataLog, settings: QuorumSettings, *, disk: Disk, pool: Pool
    ) -> None:
        self._member = member
        self._rules = member.rules
        self._log = metadata_log
        self._settings = settings
        self._disk = disk
        self._pool = pool
        self._table: dict[type[Message], _Serve] = {
            VoteRequest: self._vote,
            BeginQuorumEpochRequest: self._begin_quorum_epoch,
            EndQuorumEpochRequest: self._end_quorum_epoch,
            FetchRequest: self._fetch,
            FetchSnapshotRequest: self._fetch_snapshot,
            AddRaftVoterRequest: self._add_voter,
            RemoveRaftVoterRequest: self._remove_voter,
            UpdateRaftVoterRequest: self._update_voter,
        }

    async def handle(self, request: Message, version: int) -> Message:
        return await self._table[type(request)](request, version)

    async def _vote(self, request: VoteRequest, version: int) -> Message:
        return await self._member.step(lambda now_ms: self._rules.vote(request, version, now_ms))

    async def _begin_quorum_epoch(self, request: BeginQuorumEpochRequest, version: int) -> Message:
        return await self._member.step(lambda now: self._rules.begin_quorum_epoch(request, version, now))

    async def _end_quorum_epoch(self, request: EndQuorumEpochRequest, version: int) -> Message:
        return await self._member.step(lambda now: self._rules.end_quorum_epoch(request, version, now))

    async def _add_voter(self, request: AddRaftVoterRequest, version: int) -> Message:
        return await self._member.change_voters(lambda now: self._rules.add_voter(request, now))

    async def _remove_voter(self, request: RemoveRaftVoterRequest, version: int) -> Message:
        return await self._member.change_voters(lambda now: self._rules.remove_voter(request, now))

    async def _update_voter(self, request: UpdateRaftVoterRequest, version: int) -> Message:
        return await self._member.step(lambda now_ms: self._rules.update_voter(request, now_ms))

    # The log.

    async def _fetch(self, request: FetchRequest, version: int) -> Message:
        member = self._member
        deadline = member.now_ms() + request.max_wait_ms

        async def work() -> asyncio.Future[None] | FetchResponse:
            """The answer, or what to wait for."""
            answer = self._rules.fetch(request, version, member.now_ms())
            await member.settle()
            if answer.wait and member.now_ms() < deadline:
                return member.news
            return await self._filled(request, answer)

        while True:
            answer = await member.run(work)
            if isinstance(answer, FetchResponse):
                return answer
            await asyncio.wait([answer], timeout=max(deadline - member.now_ms(), 0) / 1000)

    async def _filled(self, request: FetchRequest, answer: FetchAnswer) -> FetchResponse:
        offset = answer.read_from
        if offset is None or not self._log.start_offset <= offset < self._log.end_offset:
            return answer.response
        wanted = min(request.max_bytes, request.topics[0].partitions[0].partition_max_bytes)
        size = min(wanted, self._settings.max_batch_bytes)
        end = self._log.end_offset
        result = self._log.log.read(offset, size, upper_bound=end)
        if result is None:
            result = await self._pool.run(self._log.log.read, offset, size, upper_bound=end, blocking=True)
        if result is not None:
            answer.response.responses[0].partitions[0].records = b"".join(result.parts)
        return answer.response

    async def _fetch_snapshot(self, request: FetchSnapshotRequest, version: int) -> Message:
        response, is_found = await self._member.step(
            lambda now: self._rules.check_fetch_snapshot(request, version, now)
        )
        if is_found:
            asked, answer = request.topics[0].partitions[0], response.topics[0].partitions[0]
            await self._pool.run(self._read_snapshot, request.max_bytes, asked, answer)
        return response

    def _read_snapshot(
        self, max_bytes: int, asked: RequestPartitionSnapshot, answer: ResponsePartitionSnapshot
    ) -> None:
        snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        try:
            file = self._disk.open(f"{self._settings.folder}/{snapshot.file_name}", read_only=True)
        except FileNotFoundError:
            answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            return
        try:
            answer.size = file.size()
            if asked.position >= answer.size:
                answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
                return
            size = min(max_bytes, self._settings.fetch_snapshot_max_bytes)
            answer.unaligned_records = file.pread(size, asked.position)
        finally:
            file.close()
