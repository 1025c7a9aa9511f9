"""Apply a fetch response to the log of a follower: append batches, or truncate where leader and follower
diverge.

- Batches are appended as they are; each must begin at the log end offset, which was the fetch offset.
- If the leader does not have the follower's last records, it returns the diverging epoch (KIP-595). The
  follower truncates its log there and fetches again.
- OFFSET_OUT_OF_RANGE: if the log ends after the leader's, it is truncated to the leader's log end offset;
  if it ends before the leader's log start offset, it is deleted and starts there.
- OFFSET_MOVED_TO_TIERED_STORAGE: the log is deleted and starts after the remote segment with the last record
  before the leader's local log start offset, with the leader epochs and producers stored with that segment.

The role of the partition may change between two steps, so each step first checks that it is still followed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.base.loop_slice import LoopSlice
from moldau.base.offsets import EARLIEST, EARLIEST_LOCAL, LATEST
from moldau.protocol.messages.fetch import PartitionData
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.records import LOG_OVERHEAD
from moldau.protocol.schema import Message
from moldau.replication.fetch_session import FollowedPartition
from moldau.replication.local_broker import LocalBroker
from moldau.storage.log.append import UnexpectedOffset
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)

#: This many batches are appended in one call.
_BATCHES_PER_APPEND = 128

Call = Callable[[Message], Awaitable[Any]]
IsCurrent = Callable[[FollowedPartition], bool]


class FollowerAppend:
    def __init__(self, broker: LocalBroker, logs: LogManager, call: Call) -> None:
        self._broker = broker
        self._logs = logs
        self._call = call

    async def apply(
        self, followed: FollowedPartition, response: PartitionData, is_current: IsCurrent, turn: LoopSlice
    ) -> None:
        """Apply a partition's response; `KafkaError` if it must be retried or cannot be followed."""
        found, reported = followed.partition.log, followed.reported
        if found is None or reported is None or reported.leader_epoch != followed.leader_epoch:
            return
        if found.log_end_offset != reported.offset:
            # The response is to a fetch at another position.
            return
        code = ErrorCode(response.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._handle_out_of_range(followed, found, is_current)
        elif code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
            await self._start_after_remote_tier(followed, is_current)
        elif code:
            raise KafkaError(code, f"response of broker {followed.partition.registration.leader}")
        elif response.diverging_epoch.end_offset >= 0:
            epoch, end_offset = response.diverging_epoch.epoch, response.diverging_epoch.end_offset
            await self._truncate(followed, truncation_offset(found, epoch, end_offset), is_current)
        else:
            await self._append(followed, found, response, is_current, turn)

    async def _append(
        self,
        followed: FollowedPartition,
        found: Log,
        response: PartitionData,
        is_current: IsCurrent,
        turn: LoopSlice,
    ) -> None:
        partition, epoch, before = followed.partition, followed.leader_epoch, found.log_end_offset
        for piece in whole_batches(response.records):
            if not is_current(followed) or partition.log is not found:
                return
            try:
                partition.append_as_follower(piece, epoch)
            except UnexpectedOffset as error:
                await self._start_inside_batch(followed, found, error, is_current)
                if not is_current(followed):
                    return
                partition.append_as_follower(piece, epoch)
            await turn.pause()
        # The leader may acknowledge records as soon as the next fetch is after them: flush as it does.
        await self._logs.upkeep.flush_if_due(found)
        if is_current(followed) and partition.log is found:
            if response.records and found.log_end_offset == before:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the response contains no whole batch")
            followed.lag = max(0, response.high_watermark - found.log_end_offset)
            partition.adopt_offsets(response.high_watermark, response.log_start_offset)

    async def _start_inside_batch(
        self, followed: FollowedPartition, found: Log, error: UnexpectedOffset, is_current: IsCurrent
    ) -> None:
        """Start an empty log at the base offset of a batch in which the leader's log start offset is."""
        end = found.log_end_offset
        if end != found.log_start_offset or not error.first_offset < end <= error.last_offset:
            raise error
        await self._start_at(followed, error.first_offset, is_current)

    async def _handle_out_of_range(
        self, followed: FollowedPartition, found: Log, is_current: IsCurrent
    ) -> None:
        leader_end = await self._leader_offset(followed, LATEST)
        if leader_end < found.log_end_offset:
            await self._truncate(followed, leader_end, is_current)
            return
        leader_start = await self._leader_offset(followed, EARLIEST)
        if leader_start > found.log_end_offset:
            await self._start_at(followed, leader_start, is_current)

    async def _start_after_remote_tier(self, followed: FollowedPartition, is_current: IsCurrent) -> None:
        build = self._broker.build_remote_state
        if build is None:
            raise KafkaError(
                ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
                "the leader has tiered storage; set remote.log.storage.system.enable on this broker as well",
            )
        local_start = await self._leader_position(followed, EARLIEST_LOCAL)
        log_start = await self._leader_offset(followed, EARLIEST)
        last_remote = local_start.offset - 1
        epoch: int = local_start.leader_epoch
        if epoch > 0:
            earlier = await self._epoch_end(followed, epoch - 1)
            if earlier.end_offset > last_remote:
                epoch = earlier.leader_epoch
        state = await build(followed.partition, last_remote, epoch, log_start)
        if not is_current(followed):
            return
        topic_partition = followed.partition.topic_partition
        logger.info("%s: starting at offset %d, after the remote tier", topic_partition, state.next_offset)
        await self._logs.restart_from_remote(topic_partition, state, when=lambda: is_current(followed))

    async def _epoch_end(self, followed: FollowedPartition, leader_epoch: int) -> EpochEndOffset:
        """Return the leader's largest epoch up to `leader_epoch`, and its end offset."""
        topic, index = followed.partition.topic_partition
        asked = OffsetForLeaderPartition(
            partition=index, current_leader_epoch=followed.leader_epoch, leader_epoch=leader_epoch
        )
        response = await self._call(
            OffsetForLeaderEpochRequest(
                replica_id=self._broker.id, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
            )
        )
        found: EpochEndOffset = response.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode.of(found.error_code))
        return found

    async def _leader_offset(self, followed: FollowedPartition, timestamp: int) -> int:
        offset: int = (await self._leader_position(followed, timestamp)).offset
        return offset

    async def _leader_position(
        self, followed: FollowedPartition, timestamp: int
    ) -> ListOffsetsPartitionResponse:
        topic, index = followed.partition.topic_partition
        response = await self._call(
            ListOffsetsRequest(
                replica_id=self._broker.id,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index,
                                current_leader_epoch=followed.leader_epoch,
                                timestamp=timestamp,
                            )
                        ],
                    )
                ],
            )
        )
        found: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return found

    async def _truncate(self, followed: FollowedPartition, offset: int, is_current: IsCurrent) -> None:
        topic_partition = followed.partition.topic_partition
        logger.info(
            "%s: truncating to offset %d, where it diverges from its leader",
            topic_partition,
            offset,
            extra=event("log.truncated", partition=str(topic_partition), offset=offset),
        )
        await self._logs.truncate_to(topic_partition, offset, when=lambda: is_current(followed))

    async def _start_at(self, followed: FollowedPartition, offset: int, is_current: IsCurrent) -> None:
        topic_partition = followed.partition.topic_partition
        logger.info(
            "%s: truncating fully and starting at the leader's offset %d",
            topic_partition,
            offset,
            extra=event("log.truncated", partition=str(topic_partition), offset=offset),
        )
        await self._logs.truncate_fully_and_start_at(
            topic_partition, offset, when=lambda: is_current(followed)
        )


def truncation_offset(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """Return where to truncate a log whose last records the leader does not have.

    `leader_epoch` is the leader's largest epoch that is not larger than the follower's, and
    `leader_end_offset` its end offset on the leader. If the follower does not have that epoch, it truncates
    to the end of its last earlier epoch; the next fetch then finds an earlier divergence, or none.
    """
    end = log.log_end_offset
    epoch, end_here = log.end_offset_for_epoch(leader_epoch)
    if end_here < 0:
        return min(leader_end_offset, end)
    if epoch != leader_epoch:
        return min(end_here, end)
    return min(end_here, leader_end_offset, end)


def whole_batches(records: Any) -> Iterator[memoryview]:
    """Yield the whole batches of a response, up to `_BATCHES_PER_APPEND` at a time."""
    if not records:
        return
    view = memoryview(records)
    start = position = count = 0
    while position + LOG_OVERHEAD <= len(view):
        size = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if size <= LOG_OVERHEAD or position + size > len(view):
            break
        position += size
        count += 1
        if count == _BATCHES_PER_APPEND:
            yield view[start:position]
            start, count = position, 0
    if position > start:
        yield view[start:position]
