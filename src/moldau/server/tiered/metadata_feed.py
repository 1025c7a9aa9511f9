"""The remote logs that this broker knows from one partition of `__remote_log_metadata`.

A feed reads its partition from the start and then follows it. It keeps the remote logs of the user
partitions that this broker hosts; `complete` makes it keep all, which the leader of the metadata partition
needs to delete what belongs to no topic any more. A user partition that is added later is read again from the
start up to the position of the feed, before the feed continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress

from moldau.base.backoff import Backoff
from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import Uuid
from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import Message
from moldau.protocol.stored.remote_log import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    decode_remote_log_record,
)
from moldau.server.tiered.metadata_topic import NAME, MetadataTopic
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import PartitionId, SegmentState, partition_id_of

logger = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0
_BACKOFF = Backoff(0.05, 5.0)
_SLICE = 500
#: How many deletions a feed remembers.
_MAX_DELETED = 5000


class MetadataFeed:
    def __init__(self, index: int, topic: MetadataTopic, clock: Clock) -> None:
        self.index = index
        self._topic = topic
        self._clock = clock
        self._wanted: set[PartitionId] = set()
        self._logs: dict[PartitionId, RemoteLog] = {}
        #: The segments whose deletion was recorded last.
        self._deleted: OrderedDict[Uuid, None] = OrderedDict()
        self._complete = False
        self._is_behind = False
        self._position = 0
        #: The end of the partition when the feed began; None until it is known.
        self._first_end: int | None = None
        self._wake = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._log_throttle = LogThrottle()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for _, reached in self._waiting:
            reached.cancel()

    @property
    def is_used(self) -> bool:
        return bool(self._wanted) or self._complete

    @property
    def is_loaded(self) -> bool:
        """Whether the feed has read everything that was there when it began."""
        return self._first_end is not None and self._position >= self._first_end

    @property
    def logs(self) -> Iterable[tuple[PartitionId, RemoteLog]]:
        return list(self._logs.items())

    @property
    def has_deletions(self) -> bool:
        return bool(self._deleted)

    def has_deleted(self, segment_id: Uuid) -> bool:
        """Return whether a segment is one of those whose deletion was recorded last."""
        return segment_id in self._deleted

    def log(self, partition_id: PartitionId) -> RemoteLog | None:
        """Return the remote log of a partition; None while it is loading."""
        return self._logs.get(partition_id) if self.is_loaded else None

    def want(self, partition_id: PartitionId) -> None:
        if partition_id in self._wanted:
            return
        self._wanted.add(partition_id)
        if partition_id not in self._logs:
            self._is_behind = True
            self._wake.set()

    def drop(self, partition_id: PartitionId) -> None:
        self._wanted.discard(partition_id)
        if not self._complete:
            self._logs.pop(partition_id, None)

    def set_complete(self, complete: bool) -> None:
        """Keep the remote logs of all partitions, or only of those that are wanted."""
        if complete == self._complete:
            return
        self._complete = complete
        if complete:
            self._is_behind = True
            self._wake.set()
        else:
            self._logs = {key: log for key, log in self._logs.items() if key in self._wanted}

    async def reach(self, offset: int) -> None:
        """Wait until the record before an offset is replayed."""
        if self._position >= offset and not self._is_behind:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, reached))
        self._wake.set()
        await reached

    async def synchronize(self) -> None:
        """Replay everything that the leader of the metadata partition has committed by now."""
        failures = 0
        while True:
            try:
                await self.reach(await self._topic.end_offset(self.index))
                return
            except KafkaError as error:
                failures += 1
                logger.debug("%s-%d has no known end: %s", NAME, self.index, error)
            await asyncio.sleep(_BACKOFF.seconds(failures))

    # The task.

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                await self._step()
                failures = 0
            except KafkaError as error:
                failures += 1
                if failures > 1 and self._log_throttle.is_due(self._clock.monotonic(), str(error)):
                    logger.warning(
                        "%s-%d cannot be read yet: %s",
                        NAME,
                        self.index,
                        error,
                        extra=event("tiered.metadata_not_read", partition=self.index),
                    )
                await asyncio.sleep(_BACKOFF.seconds(failures))
            except Exception:  # no other task reads this partition
                failures += 1
                logger.exception(
                    "%s-%d cannot be read",
                    NAME,
                    self.index,
                    extra=event("tiered.metadata_not_read", partition=self.index),
                )
                await asyncio.sleep(_BACKOFF.seconds(failures))

    async def _step(self) -> None:
        if self._first_end is None:
            self._first_end = await self._topic.end_offset(self.index)
        if self._is_behind:
            await self._catch_up()
        self._wake.clear()
        found = await self._topic.read(self.index, self._position)
        if self._is_behind:
            # Partitions that were added meanwhile must not miss these records.
            return
        complete, wanted = self._complete, frozenset(self._wanted)
        await self._replay(found.values, lambda key: complete or key in wanted, self._logs)
        self._position = found.next_offset
        if self._complete != complete or self._wanted != wanted:
            self._logs = {key: log for key, log in self._logs.items() if self._keeps(key)}
        self._notify()
        if not found.values and not self._is_behind:
            await self._idle()

    async def _catch_up(self) -> None:
        """Read everything before the position again, for the partitions that were added."""
        self._is_behind = False
        complete, known = self._complete, set(self._logs)
        added = self._wanted - known
        fresh = {key: RemoteLog() for key in added}
        position = 0
        try:
            while position < self._position:
                found = await self._topic.read(self.index, position)
                if found.next_offset <= position:
                    break
                await self._replay(
                    found.values, lambda key: key not in known and (complete or key in added), fresh
                )
                position = found.next_offset
        except KafkaError:
            self._is_behind = True
            raise
        self._logs.update((key, log) for key, log in fresh.items() if self._keeps(key))

    def _keeps(self, partition_id: PartitionId) -> bool:
        return self._complete or partition_id in self._wanted

    async def _replay(
        self, values: list[bytes], keeps: Callable[[PartitionId], bool], logs: dict[PartitionId, RemoteLog]
    ) -> None:
        for number, value in enumerate(values):
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            try:
                record = decode_remote_log_record(value)
                key = _key(record)
                if key is not None and keeps(key):
                    logs.setdefault(key, RemoteLog()).replay(record)
                    self._remember(record)
            except (DecodeError, ValueError) as error:
                logger.error(
                    "%s-%d has a record that is ignored: %s",
                    NAME,
                    self.index,
                    error,
                    extra=event("tiered.metadata_ignored", partition=self.index),
                )

    def _remember(self, record: Message) -> None:
        if (
            isinstance(record, RemoteLogSegmentMetadataUpdateRecord)
            and record.remote_log_segment_state == SegmentState.DELETE_SEGMENT_FINISHED
        ):
            self._deleted[record.remote_log_segment_id.id] = None
            if len(self._deleted) > _MAX_DELETED:
                self._deleted.popitem(last=False)

    def _notify(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for offset, reached in waiting:
            if reached.done():
                continue
            if self._position >= offset:
                reached.set_result(None)
            else:
                self._waiting.append((offset, reached))

    async def _idle(self) -> None:
        """Wait for new records: the local replica announces them, others are asked now and then."""
        partition = self._topic.local(self.index)

        def wake(_size: int) -> None:
            self._wake.set()

        if partition is not None:
            partition.progress.high_watermark.add(wake)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._wake.wait()
        finally:
            if partition is not None:
                partition.progress.high_watermark.remove(wake)


def _key(record: Message) -> PartitionId | None:
    if isinstance(record, RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord):
        return partition_id_of(record.remote_log_segment_id.topic_id_partition)
    return None
