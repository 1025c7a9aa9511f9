"""ShareFetch at the partition leader: waits until records are available, then acquires them for the member.

Every share partition names its next fetch offset; the log is read there, and the member acquires the records
that it may have. If less than `min_bytes` is found, the fetch waits for appends, acknowledgements and expired
acquisition locks, at most `max_wait_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.protocol.messages.share_fetch import AcquiredRecords, PartitionData
from moldau.protocol.records import iter_batches, iter_records
from moldau.protocol.stored.control import ControlType, decode_control_key
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.share.sessions import TopicIdPartition
from moldau.server.share.share_partition import SharePartition
from moldau.server.share.share_partition_manager import SharePartitionManager
from moldau.share.acquisition import Acquired, AcquireRequest, FetchedBatch, FetchedRecords, acquire
from moldau.share.keys import SharePartitionKey
from moldau.storage.log.log import Log
from moldau.storage.log.reader import ReadResult
from moldau.storage.segment.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from moldau.server.tiered.reads import RemoteReads


class ShareFetchParams(NamedTuple):
    group_id: str
    member_id: str
    partitions: Sequence[TopicIdPartition]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool
    committed: bool


class _PartitionRead(NamedTuple):
    partition: SharePartition
    offset: int
    log: Log
    read: ReadResult
    #: Of a read from the remote tier; the local log has them otherwise.
    remote_aborted: list[AbortedTransaction] | None = None


class ShareFetch:
    def __init__(
        self,
        share_partitions: SharePartitionManager,
        replicas: ReplicaManager,
        pool: Pool,
        params: ShareFetchParams,
        remote: RemoteReads | None = None,
    ) -> None:
        self._share_partitions = share_partitions
        self._replicas = replicas
        self._pool = pool
        self._params = params
        #: None without tiered storage.
        self._remote = remote
        self._loop = asyncio.get_running_loop()
        self._partitions: dict[TopicIdPartition, SharePartition] = {}
        self._responses: dict[TopicIdPartition, PartitionData] = {}
        self._changed: asyncio.Future[None] | None = None
        self._is_changed = False
        #: Whether reading the log has yielded to the event loop.
        self._has_yielded = False

    async def run(self) -> dict[TopicIdPartition, PartitionData]:
        params = self._params
        if not params.partitions or params.max_records == 0 or params.max_bytes == 0:
            return {}
        deadline = self._loop.time() + params.max_wait_ms / 1000
        self._open()
        try:
            while not await self._attempt(last=self._loop.time() >= deadline):
                await self._wait(deadline)
        finally:
            self._close()
        return self._responses

    def _open(self) -> None:
        for key in self._params.partitions:
            try:
                partition = self._share_partitions.get(SharePartitionKey(self._params.group_id, *key))
            except KafkaError as error:
                self._fail(key, error)
                continue
            self._partitions[key] = partition
            partition.add_waiter(self._on_change)
            partition.replica.progress.high_watermark.add(self._on_append)

    def _close(self) -> None:
        for partition in self._partitions.values():
            partition.remove_waiter(self._on_change)
            partition.replica.progress.high_watermark.remove(self._on_append)

    # Waiting.

    def _on_append(self, size: int) -> None:
        self._on_change()

    def _on_change(self) -> None:
        self._is_changed = True
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def _wait(self, deadline: float) -> None:
        if self._is_changed:
            return
        self._changed = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._on_change)
        try:
            await self._changed
        finally:
            timer.cancel()
            self._changed = None

    # Reading.

    async def _attempt(self, *, last: bool) -> bool:
        """Return whether the response is complete; the `last` attempt accepts any amount."""
        self._is_changed = self._has_yielded = False
        for key, partition in list(self._partitions.items()):
            if partition.failure is not None:
                self._fail(key, partition.failure)
        if len(self._responses) == len(self._params.partitions):
            return True
        offsets = self._offsets()
        if not offsets:
            return last
        try:
            found, size = await self._read(offsets)
            enough = last or size >= self._params.min_bytes or any(key in self._responses for key in offsets)
            if enough:
                self._acquire(found)
            return enough
        finally:
            for key in offsets:
                self._release(key)

    def _offsets(self) -> dict[TopicIdPartition, int]:
        """Return the fetch offsets of partitions with records to acquire, and reserve these partitions."""
        offsets = {}
        for key, partition in self._partitions.items():
            state = partition.active
            if state is None or partition.busy or key in self._responses or not state.can_acquire():
                continue
            partition.busy = True
            offsets[key] = state.next_fetch_offset()
        return offsets

    def _release(self, key: TopicIdPartition) -> None:
        partition = self._partitions.get(key)
        if partition is None:
            return
        partition.busy = False
        if self._has_yielded:
            # Other fetches may have skipped the partition meanwhile; waking them is no change for this one.
            changed = self._is_changed
            partition.wake()
            self._is_changed = changed

    async def _read(
        self, offsets: dict[TopicIdPartition, int]
    ) -> tuple[dict[TopicIdPartition, _PartitionRead], int]:
        found: dict[TopicIdPartition, _PartitionRead] = {}
        size = 0
        bytes_per_partition = max(1, self._params.max_bytes // len(offsets))
        for key, offset in offsets.items():
            partition = self._partitions[key]
            try:
                log = partition.replica.leader_log()
                max_bytes = max(0, min(bytes_per_partition, self._params.max_bytes - size))
                if self._remote is not None and log.log_start_offset <= offset < log.local_log_start_offset:
                    self._has_yielded = True
                    remote = await self._read_remote(self._remote, partition, offset, max_bytes)
                    if remote is not None:
                        found[key] = remote
                        size += remote.read.size
                    continue
                read = self._read_log(log, offset, max_bytes, size == 0, blocking=False)
                if read is None:
                    self._has_yielded = True
                    read = await self._pool.run(
                        self._read_log, log, offset, max_bytes, size == 0, blocking=True
                    )
                if read is not None:
                    found[key] = _PartitionRead(partition, offset, log, read)
                    size += read.size
            except KafkaError as error:
                self._read_failed(key, partition, error)
        return found, size

    async def _read_remote(
        self, remote: RemoteReads, partition: SharePartition, offset: int, max_bytes: int
    ) -> _PartitionRead | None:
        fetched = await remote.read(partition.replica, offset, max_bytes, committed=self._params.committed)
        if fetched is None or not fetched.found.data:
            return None
        data, first, following = fetched.found
        read = ReadResult([data], len(data), first, following, first, 0)
        log = partition.replica.usable_log()
        return _PartitionRead(partition, offset, log, read, fetched.aborted)

    def _read_log(
        self, log: Log, offset: int, max_bytes: int, min_one_batch: bool, *, blocking: bool
    ) -> ReadResult | None:
        bound = log.last_stable_offset if self._params.committed else log.high_watermark
        return log.reader.read(
            offset, max_bytes, upper_bound=bound, min_one_batch=min_one_batch, blocking=blocking
        )

    def _read_failed(self, key: TopicIdPartition, partition: SharePartition, error: KafkaError) -> None:
        self._replicas.storage_failed(error)
        state, log = partition.active, partition.replica.log
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and state is not None and log is not None:
            # The log start offset has advanced: the group continues there.
            state.log_start_moved(log.log_start_offset)
            self._responses[key] = PartitionData(partition_index=key.partition, records=b"")
            return
        self._share_partitions.drop(partition)
        self._fail(key, error)

    def _fail(self, key: TopicIdPartition, error: KafkaError) -> None:
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.busy = False
            partition.remove_waiter(self._on_change)
            partition.replica.progress.high_watermark.remove(self._on_append)
        self._responses[key] = PartitionData(
            partition_index=key.partition, error_code=error.code, records=b""
        )

    # Acquiring.

    def _acquire(self, found: dict[TopicIdPartition, _PartitionRead]) -> None:
        remaining = self._params.max_records
        for key, each in found.items():
            state = each.partition.active
            if state is None:
                continue
            data = each.read.parts[0] if each.read.parts else memoryview(b"")
            batches = _batches(data, self._params.committed)
            request = AcquireRequest(
                self._params.member_id, remaining, self._params.batch_size, self._params.strict
            )
            acquired = acquire(state, request, FetchedRecords(each.offset, batches, self._aborted(each)))
            each.partition.watch_locks()
            remaining -= sum(span.last - span.first + 1 for span in acquired)
            self._responses[key] = _partition_data(key, data, batches, acquired)

    def _aborted(self, found: _PartitionRead) -> list[tuple[int, int]]:
        if not self._params.committed or not found.read.size:
            return []
        if found.remote_aborted is not None:
            return [(each.producer_id, each.first_offset) for each in found.remote_aborted]
        aborted = found.log.reader.aborted_transactions(found.offset, found.read.next_offset)
        return [(each.producer_id, each.first_offset) for each in aborted]


def _batches(data: memoryview, committed: bool) -> list[FetchedBatch]:
    found = []
    for position, header in iter_batches(data):
        aborts = False
        if committed and header.is_control:
            batch = data[position : position + header.size_in_bytes]
            first = next(iter_records(batch, header), None)
            aborts = first is not None and decode_control_key(first.key) == ControlType.ABORT
        found.append(
            FetchedBatch(
                header.base_offset,
                header.last_offset,
                header.size_in_bytes,
                header.producer_id,
                header.is_transactional,
                aborts,
            )
        )
    return found


def _partition_data(
    key: TopicIdPartition, data: memoryview, batches: Sequence[FetchedBatch], acquired: Sequence[Acquired]
) -> PartitionData:
    response = PartitionData(partition_index=key.partition, records=b"")
    if acquired:
        first, last = acquired[0].first, acquired[-1].last
        start = sum(batch.size for batch in batches if batch.last < first)
        size = sum(batch.size for batch in batches if batch.last >= first and batch.base <= last)
        response.records = [data[start : start + size]]
        response.acquired_records = [
            AcquiredRecords(
                first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
            )
            for each in acquired
        ]
    return response
