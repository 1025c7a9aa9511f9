"""Handling of the quorum's requests from other nodes: Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch,
FetchSnapshot and voter changes.

Raft decides the response; records and snapshot bytes are read from disk here. A fetch that finds nothing new
waits until there is something or its `max_wait_ms` has elapsed.
"""

from __future__ import annotations

import asyncio

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
from moldau.quorum.driver import RaftDriver
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import SnapshotId
from moldau.raft.types import FetchResult
from moldau.storage.disk.disk import Disk


class QuorumRequestHandler:
    def __init__(
        self,
        driver: RaftDriver,
        metadata_log: MetadataLog,
        settings: QuorumSettings,
        *,
        disk: Disk,
        pool: Pool,
    ) -> None:
        self._driver = driver
        self._raft = driver.raft
        self._log = metadata_log
        self._settings = settings
        self._disk = disk
        self._pool = pool

    async def handle(self, request: Message, version: int) -> Message:
        raft = self._raft
        match request:
            case (
                VoteRequest() | BeginQuorumEpochRequest() | EndQuorumEpochRequest() | UpdateRaftVoterRequest()
            ):
                return await self._driver.step(lambda now_ms: raft.step(request, version, now_ms))
            case FetchRequest():
                return await self._fetch(request, version)
            case FetchSnapshotRequest():
                return await self._fetch_snapshot(request, version)
            case AddRaftVoterRequest():
                return await self._driver.change_voters(lambda now_ms: raft.add_voter(request, now_ms))
            case RemoveRaftVoterRequest():
                return await self._driver.change_voters(lambda now_ms: raft.remove_voter(request, now_ms))
        raise ValueError(f"{type(request).__name__} is not a request of the metadata quorum")

    async def _fetch(self, request: FetchRequest, version: int) -> Message:
        driver = self._driver
        deadline = driver.now_ms() + request.max_wait_ms

        async def task() -> asyncio.Future[None] | FetchResponse:
            """Return the response, or the change to wait for."""
            result = self._raft.fetch(request, version, driver.now_ms())
            await driver.process_ready()
            if result.wait and driver.now_ms() < deadline:
                return driver.next_change
            return await self._with_records(request, result)

        while True:
            outcome = await driver.run(task)
            if isinstance(outcome, FetchResponse):
                return outcome
            await asyncio.wait([outcome], timeout=max(deadline - driver.now_ms(), 0) / 1000)

    async def _with_records(self, request: FetchRequest, result: FetchResult) -> FetchResponse:
        offset = result.read_from
        if offset is None or not self._log.start_offset <= offset < self._log.end_offset:
            return result.response
        max_bytes = min(request.max_bytes, request.topics[0].partitions[0].partition_max_bytes)
        size = min(max_bytes, self._settings.max_batch_bytes)
        end = self._log.end_offset
        data = self._log.log.reader.read(offset, size, upper_bound=end)
        if data is None:
            data = await self._pool.run(
                self._log.log.reader.read, offset, size, upper_bound=end, blocking=True
            )
        if data is not None:
            result.response.responses[0].partitions[0].records = b"".join(data.parts)
        return result.response

    async def _fetch_snapshot(self, request: FetchSnapshotRequest, version: int) -> Message:
        response, is_found = await self._driver.step(
            lambda now_ms: self._raft.fetch_snapshot(request, version, now_ms)
        )
        if is_found:
            requested, partition = request.topics[0].partitions[0], response.topics[0].partitions[0]
            await self._pool.run(self._read_snapshot, request.max_bytes, requested, partition)
        return response

    def _read_snapshot(
        self, max_bytes: int, requested: RequestPartitionSnapshot, partition: ResponsePartitionSnapshot
    ) -> None:
        """Fill in the snapshot's size and bytes. Blocking."""
        snapshot = SnapshotId(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
        try:
            file = self._disk.open(f"{self._settings.folder}/{snapshot.file_name}", read_only=True)
        except FileNotFoundError:
            partition.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            return
        try:
            partition.size = file.size()
            if requested.position >= partition.size:
                partition.error_code = ErrorCode.POSITION_OUT_OF_RANGE
                return
            size = min(max_bytes, self._settings.fetch_snapshot_max_bytes)
            partition.unaligned_records = file.pread(size, requested.position)
        finally:
            file.close()
