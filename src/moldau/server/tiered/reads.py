"""Reading offsets that are only in the remote tier, for consumers and for ListOffsets.

A read runs in a thread of its own kind and is waited for at most `remote.fetch.max.wait.ms`. A read that
takes longer continues: what it has loaded is in memory when the client asks again. If too many reads wait,
or the quota is used up, the client gets no records, and its response is held until another attempt may
succeed. A store that fails is KAFKA_STORAGE_ERROR, and remote metadata that is still loading
REPLICA_NOT_AVAILABLE; clients retry both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, ParamSpec, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.protocol.messages.fetch import AbortedTransaction, FetchPartition, PartitionData
from moldau.replication.partition import Partition
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.quota import RemoteQuota
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.store import StoreCalls
from moldau.storage.log.log import Log
from moldau.storage.log.reader import TimestampOffset
from moldau.storage.segment.txn_index import AbortedTransaction as AbortedInLog
from moldau.tiered.reading.reader import RemoteRead, RemoteReader
from moldau.tiered.state.lineage import is_in_lineage, readable_end, with_records
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import PartitionId, RemoteSegment, SegmentState
from moldau.tiered.stores.interface import RemoteStoreError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

#: How many segments without a record at or after the offset one read skips.
_MAX_SKIPPED = 16
#: How many transaction indexes are read in one turn of a thread; how many segments are looked up for it.
_MAX_INDEXES = 16
_MAX_LOOKUPS = 500


class RemoteAsk(NamedTuple):
    """A partition of a fetch request whose offset is only in the remote tier; `answer` is filled in."""

    partition: Partition
    asked: FetchPartition
    answer: PartitionData


class RemoteFetch(NamedTuple):
    found: RemoteRead
    aborted: list[AbortedInLog]


class Filled(NamedTuple):
    """The bytes that were found. `retry_ms`: if there are none, when to ask again (0: at once)."""

    size: int
    retry_ms: int


class RemoteReads:
    def __init__(
        self,
        metadata: RemoteLogMetadata,
        store: StoreCalls,
        settings: TieredSettings,
        quota: RemoteQuota,
        clock: Clock,
    ) -> None:
        self._metadata = metadata
        self._store = store
        self._settings = settings
        self._quota = quota
        self._clock = clock
        self._running: set[asyncio.Task[RemoteFetch]] = set()
        self._ahead: set[asyncio.Task[None]] = set()
        self._log_throttle = LogThrottle()

    async def close(self) -> None:
        tasks = [*self._running, *self._ahead]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Fetch.

    def ask(self, partition: Partition, asked: FetchPartition, answer: PartitionData) -> RemoteAsk:
        return RemoteAsk(partition, asked, answer)

    async def fill(self, asks: Iterable[RemoteAsk], max_bytes: int, *, committed: bool) -> Filled:
        """Read the partitions of a fetch request.

        `committed`: the consumer reads only committed transactions.
        """
        started: list[tuple[RemoteAsk, asyncio.Task[RemoteFetch]]] = []
        retry_ms = 0
        for ask in asks:
            room = max(0, min(ask.asked.partition_max_bytes, max_bytes))
            task = self._start(ask.partition, ask.asked.fetch_offset, room, committed=committed)
            if task is None:
                retry_ms = self._retry_ms()
            else:
                started.append((ask, task))
        await self._wait([task for _, task in started])
        size = 0
        for ask, task in started:
            if task.done() and not task.cancelled():
                size += self._take(ask, task, max_bytes - size, committed=committed, first=size == 0)
        has_failed = any(ask.answer.error_code for ask, _ in started)
        return Filled(size, 0 if size or has_failed else retry_ms)

    def _retry_ms(self) -> int:
        """Return how long a read that was not started waits for the quota, or for other reads."""
        longest_ms = self._settings.integer("remote.fetch.max.wait.ms")
        return min(self._quota.throttle_ms() or longest_ms, longest_ms)

    async def read(
        self, partition: Partition, offset: int, max_bytes: int, *, committed: bool
    ) -> RemoteFetch | None:
        """Read one partition; None if there are no records this time, and the client has to ask again."""
        task = self._start(partition, offset, max_bytes, committed=committed)
        if task is None:
            return None
        await self._wait([task])
        return task.result() if task.done() and not task.cancelled() else None

    def _start(
        self, partition: Partition, offset: int, max_bytes: int, *, committed: bool
    ) -> asyncio.Task[RemoteFetch] | None:
        """Start a read, unless too many are waiting or the quota is used up."""
        if not self._store.may_read or self._quota.throttle_ms() > 0:
            return None
        task = asyncio.create_task(self._fetch(partition, offset, max_bytes, committed=committed))
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def _wait(self, tasks: list[asyncio.Task[RemoteFetch]]) -> None:
        if tasks:
            wait_ms = self._settings.integer("remote.fetch.max.wait.ms")
            await asyncio.wait(tasks, timeout=wait_ms / 1000)

    def _finished(self, task: asyncio.Task[RemoteFetch]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Retrieved here, because the request may have ended before.
            task.exception()

    def _take(
        self, ask: RemoteAsk, task: asyncio.Task[RemoteFetch], room: int, *, committed: bool, first: bool
    ) -> int:
        """Put a result into the response; return its size."""
        error = task.exception()
        if error is not None:
            if not isinstance(error, KafkaError):
                raise error
            ask.answer.error_code = error.code
            return 0
        data, aborted = task.result().found.data, task.result().aborted
        if not data or (len(data) > room and not first):
            return 0
        ask.answer.records = [data]
        if committed:
            ask.answer.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in dict.fromkeys(aborted)
            ]
        return len(data)

    async def _fetch(
        self, partition: Partition, offset: int, max_bytes: int, *, committed: bool
    ) -> RemoteFetch:
        log, partition_id = partition.usable_log(), _id_of(partition)
        traffic = self._store.traffic.of(partition_id.topic)
        traffic.fetch_requests += 1
        try:
            return await self._read(log, partition_id, offset, max_bytes, committed=committed)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                traffic.fetch_errors += 1
            if self._log_throttle.is_due(self._clock.monotonic(), str(error)):
                logger.warning(
                    "%s cannot be read from the remote tier: %s",
                    partition_id,
                    error,
                    extra=event("tiered.read_failed", partition=str(partition_id)),
                )
            raise

    async def _read(
        self, log: Log, partition_id: PartitionId, offset: int, max_bytes: int, *, committed: bool
    ) -> RemoteFetch:
        remote = self._metadata.loaded(partition_id)
        bound = log.last_stable_offset if committed else log.high_watermark
        wanted = offset
        for _ in range(_MAX_SKIPPED):
            epochs = log.leader_epochs
            segment = self._segment(log, remote, wanted)
            end = readable_end(segment, epochs.epoch_for(wanted), epochs.entries, log.log_end_offset)
            found = await self._in_thread(
                self._store.reader.read,
                segment,
                wanted,
                max_bytes,
                upper_bound=min(bound, end),
                min_one_batch=True,
            )
            if found.data or found.next_offset == wanted or found.next_offset >= bound:
                break
            wanted = found.next_offset
            if wanted >= log.local_log_start_offset:
                # The last remote records were compacted away before the topic was tiered.
                found = await self._in_thread(_read_local, log, wanted, max_bytes, bound)
                break
        else:
            return RemoteFetch(RemoteRead(memoryview(b""), offset, offset), [])
        if found.data:
            self._read_ahead(segment, found.next_offset)
        aborted: list[AbortedInLog] = []
        if committed and found.data:
            aborted = await self._aborted(log, remote, segment, offset, found.next_offset)
        return RemoteFetch(found, aborted)

    def _segment(self, log: Log, remote: RemoteLog, offset: int) -> RemoteSegment:
        segment = remote.lookup(log.leader_epochs.epoch_for(offset), offset)
        if segment is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{log.topic_partition}: offset {offset} is neither on the local disk nor in the remote tier",
            )
        return segment

    async def _in_thread(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await self._store.read(fn, *args, **kwargs)
        except RemoteStoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _read_ahead(self, segment: RemoteSegment, next_offset: int) -> None:
        """Load what a consumer that continues will read next, if the store is not busy."""
        reader = self._store.reader
        if not self._store.may_read or self._ahead or not reader.wants_ahead(segment, next_offset):
            return
        task = asyncio.create_task(self._load_ahead(segment, next_offset))
        self._ahead.add(task)
        task.add_done_callback(self._ahead.discard)

    async def _load_ahead(self, segment: RemoteSegment, next_offset: int) -> None:
        try:
            await self._store.read(self._store.reader.read_ahead, segment, next_offset)
        except RemoteStoreError as error:
            logger.debug("%s cannot be read ahead: %s", segment, error)

    async def _aborted(
        self, log: Log, remote: RemoteLog, segment: RemoteSegment, start: int, upper_bound: int
    ) -> list[AbortedInLog]:
        """Collect the aborted transactions of a range; a marker may be in a later segment."""
        while True:
            local_start = log.local_log_start_offset
            found = await self._collect_aborted(log, remote, segment, start, upper_bound)
            if log.local_log_start_offset == local_start:
                return found
            # A segment has left the local disk after the remote ones were looked up.

    async def _collect_aborted(
        self, log: Log, remote: RemoteLog, segment: RemoteSegment, start: int, upper_bound: int
    ) -> list[AbortedInLog]:
        reader = self._store.reader
        found: list[AbortedInLog] = []
        following: RemoteSegment | None = segment
        while following is not None:
            indexes, following = _with_aborted(log, remote, following)
            more, complete = await self._in_thread(
                _aborted_between, reader, indexes, start, upper_bound, log if following is None else None
            )
            found += more
            if complete:
                break
        return found

    # Timestamps.

    async def offset_for_timestamp(self, partition: Partition, timestamp: int) -> TimestampOffset | None:
        """Return the first record of the remote tier with this timestamp or a later one."""
        log, remote = partition.usable_log(), self._metadata.loaded(_id_of(partition))
        timeout_ms = self._settings.integer("remote.list.offsets.request.timeout.ms")
        lineage = with_records(log.leader_epochs.entries)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for segment in remote.segments:
                    if (
                        segment.state is SegmentState.COPY_SEGMENT_FINISHED
                        and segment.max_timestamp_ms >= timestamp
                        and segment.end_offset >= log.log_start_offset
                        and segment.start_offset < log.local_log_start_offset
                        and is_in_lineage(segment, log.log_end_offset, lineage)
                    ):
                        found = await self._in_thread(
                            self._store.reader.offset_for_timestamp, segment, timestamp, log.log_start_offset
                        )
                        if found is not None:
                            return TimestampOffset(*found)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"the remote store did not answer within {timeout_ms} ms"
            ) from None
        return None


def _with_aborted(
    log: Log, remote: RemoteLog, first: RemoteSegment
) -> tuple[list[RemoteSegment], RemoteSegment | None]:
    """Return the next segments with aborted transactions, and where to continue (None: at the local log)."""
    found: list[RemoteSegment] = []
    following: RemoteSegment | None = first
    for _ in range(_MAX_LOOKUPS):
        if following is None or len(found) == _MAX_INDEXES:
            break
        if not following.txn_index_empty:
            found.append(following)
        offset = following.end_offset + 1
        following = None
        if offset <= remote.last_aborted_offset:
            following = remote.lookup(log.leader_epochs.epoch_for(offset), offset)
    return found, following


def _aborted_between(
    reader: RemoteReader, segments: list[RemoteSegment], start: int, upper_bound: int, local: Log | None
) -> tuple[list[AbortedInLog], bool]:
    """Collect aborted transactions from segments and then from the local log; return also if that is all."""
    found: list[AbortedInLog] = []
    for segment in segments:
        more, complete = reader.aborted_transactions(segment, start, upper_bound)
        found += more
        if complete:
            return found, True
    if local is not None:
        found += local.reader.aborted_transactions(start, upper_bound)
    return found, local is not None


def _read_local(log: Log, offset: int, max_bytes: int, upper_bound: int) -> RemoteRead:
    found = log.reader.read(offset, max_bytes, upper_bound=upper_bound, blocking=True)
    if found is None:
        return RemoteRead(memoryview(b""), offset, offset)
    return RemoteRead(memoryview(b"".join(found.parts)), found.first_offset, found.next_offset)


def _id_of(partition: Partition) -> PartitionId:
    topic, index = partition.topic_partition
    return PartitionId(topic, partition.topic_id, index)
