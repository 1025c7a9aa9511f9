"""What a follower does with a leader's answer: append it, cut its own log, or begin anew.

- Batches are appended as they came; each must begin where the log ends, which is what was asked for.
- A leader that does not have our last records says where we part (the diverging epoch): everything behind is
  cut off, and the next fetch asks again.
- OFFSET_OUT_OF_RANGE: our log ends behind the leader's end (cut it there) or before its start (throw it away
  and begin at the leader's start).

Between two steps the partition may get another role: nothing is changed unless it is still followed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.loop_slice import LoopSlice
from moldau.base.offsets import EARLIEST, LATEST
from moldau.protocol.messages.fetch import PartitionData
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.records import LOG_OVERHEAD
from moldau.protocol.schema import Message
from moldau.replication.following import Following, truncation_offset
from moldau.replication.local_broker import LocalBroker
from moldau.storage.log.append import UnexpectedOffset
from moldau.storage.log.log import Log
from moldau.storage.log_manager import LogManager

log = logging.getLogger(__name__)

#: So many batches are appended before others get their turn.
_BATCHES_AT_A_TIME = 128

Call = Callable[[Message], Awaitable[Any]]
IsCurrent = Callable[[Following], bool]


class CatchingUp:
    def __init__(self, broker: LocalBroker, logs: LogManager, call: Call) -> None:
        self._broker = broker
        self._logs = logs
        self._call = call

    async def take(
        self, following: Following, answer: PartitionData, is_current: IsCurrent, turn: LoopSlice
    ) -> None:
        """Raises `KafkaError` when the partition has to wait, or cannot be followed."""
        found, asked = following.partition.log, following.asked
        if found is None or asked is None or asked.leader_epoch != following.leader_epoch:
            return
        if found.log_end_offset != asked.offset:
            # Somebody else's news: the position we have now was not asked for.
            return
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._begin_anew(following, found, is_current)
        elif code:
            raise KafkaError(code, f"broker {following.partition.registration.leader} says so")
        elif answer.diverging_epoch.end_offset >= 0:
            epoch, end_offset = answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset
            await self._cut(following, truncation_offset(found, epoch, end_offset), is_current)
        else:
            await self._append(following, found, answer, is_current, turn)

    async def _append(
        self,
        following: Following,
        found: Log,
        answer: PartitionData,
        is_current: IsCurrent,
        turn: LoopSlice,
    ) -> None:
        partition, epoch, before = following.partition, following.leader_epoch, found.log_end_offset
        for piece in pieces(answer.records):
            if not is_current(following) or partition.log is not found:
                return
            try:
                partition.append_as_follower(piece, epoch)
            except UnexpectedOffset as error:
                await self._begin_inside_batch(following, found, error, is_current)
                if not is_current(following):
                    return
                partition.append_as_follower(piece, epoch)
            await turn.pause()
        # What the next fetch says we have may be acknowledged: it is as safe here as on the leader.
        await self._logs.flush_if_due(found)
        if is_current(following) and partition.log is found:
            if answer.records and found.log_end_offset == before:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "there is no whole batch in what was fetched")
            following.lag = max(0, answer.high_watermark - found.log_end_offset)
            partition.adopt_offsets(answer.high_watermark, answer.log_start_offset)

    async def _begin_inside_batch(
        self, following: Following, found: Log, error: UnexpectedOffset, is_current: IsCurrent
    ) -> None:
        """The leader's log starts inside a batch; an empty log then begins where the batch does."""
        end = found.log_end_offset
        if end != found.log_start_offset or not error.first_offset < end <= error.last_offset:
            raise error
        await self._start_at(following, error.first_offset, is_current)

    async def _begin_anew(self, following: Following, found: Log, is_current: IsCurrent) -> None:
        leader_end = await self._ask_leader(following, LATEST)
        if leader_end < found.log_end_offset:
            await self._cut(following, leader_end, is_current)
            return
        leader_start = await self._ask_leader(following, EARLIEST)
        if leader_start > found.log_end_offset:
            await self._start_at(following, leader_start, is_current)

    async def _ask_leader(self, following: Following, timestamp: int) -> int:
        topic, index = following.partition.topic_partition
        response = await self._call(
            ListOffsetsRequest(
                replica_id=self._broker.id,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index,
                                current_leader_epoch=following.leader_epoch,
                                timestamp=timestamp,
                            )
                        ],
                    )
                ],
            )
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        offset: int = answer.offset
        return offset

    async def _cut(self, following: Following, offset: int, is_current: IsCurrent) -> None:
        topic_partition = following.partition.topic_partition
        log.info("%s is cut at %d, behind which its leader has something else", topic_partition, offset)
        await self._logs.truncate_to(topic_partition, offset, when=lambda: is_current(following))

    async def _start_at(self, following: Following, offset: int, is_current: IsCurrent) -> None:
        topic_partition = following.partition.topic_partition
        log.info("%s is thrown away and begins at %d, as its leader's does", topic_partition, offset)
        await self._logs.truncate_fully_and_start_at(
            topic_partition, offset, when=lambda: is_current(following)
        )


def pieces(records: Any) -> Iterator[memoryview]:
    """Whole batches, not too many at a time; what is behind the last whole one is of no use."""
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
        if count == _BATCHES_AT_A_TIME:
            yield view[start:position]
            start, count = position, 0
    if position > start:
        yield view[start:position]
