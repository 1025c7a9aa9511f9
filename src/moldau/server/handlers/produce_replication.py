"""Produce with acks=all: the answer waits until every in-sync replica has the records, or time is up.

Partitions are told apart only in the answer: each has the code it ended with, REQUEST_TIMED_OUT until then.
"""

from __future__ import annotations

import asyncio
from functools import partial

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.produce import PartitionProduceResponse, TopicProduceData
from moldau.replication.partition import Partition

Failed = list[tuple[TopicProduceData, PartitionProduceResponse]]


class Replication:
    """Of the records of one request; one future for all partitions, and one timer."""

    __slots__ = ("_answers", "_done", "_left", "_timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._answers: Failed = []
        self._left = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(
        self, partition: Partition, offset: int, topic: TopicProduceData, answer: PartitionProduceResponse
    ) -> None:
        self._left += 1
        self._answers.append((topic, answer))
        answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        partition.progress.when_committed(offset, partial(self._ended, answer))

    def _ended(self, answer: PartitionProduceResponse, code: ErrorCode) -> None:
        if self._done.done():
            return
        answer.error_code = code
        self._left -= 1
        if not self._left:
            self._done.set_result(None)

    async def wait(self) -> Failed:
        """Those that failed."""
        timer = asyncio.get_running_loop().call_later(self._timeout_ms / 1000, self._time_is_up)
        try:
            await self._done
        finally:
            timer.cancel()
        return [(topic, answer) for topic, answer in self._answers if answer.error_code]

    def _time_is_up(self) -> None:
        if not self._done.done():
            self._done.set_result(None)
