"""Propose ISR changes to the controller: AlterPartition, one request at a time with all pending changes.

A partition submits a change and receives the controller's decision later. A request that fails is retried
until it succeeds or the partition has withdrawn the change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.base.log_throttle import LogThrottle
from moldau.metadata.image import RECOVERED
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from moldau.replication.leadership import IsrChange
from moldau.replication.local_broker import LocalBroker

logger = logging.getLogger(__name__)

AlterPartition = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
_BACKOFF = Backoff(0.05, 1.0)


class Proposer(Protocol):
    topic_id: TopicId
    topic_partition: TopicPartition

    def change_made(self, change: IsrChange, answer: ResponsePartitionData) -> None: ...

    def change_refused(self, change: IsrChange, code: ErrorCode) -> bool:
        """Handle a refusal; return whether to send the change again."""
        ...

    def still_wants(self, change: IsrChange) -> bool: ...


class PartitionChanges:
    def __init__(self, broker: LocalBroker, alter_partition: AlterPartition) -> None:
        self._broker = broker
        self._alter_partition = alter_partition
        self._pending: dict[tuple[TopicId, int], tuple[Proposer, IsrChange]] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._failures = 0
        self._log_throttle = LogThrottle()
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.refused = 0

    def count(self, growth: int) -> None:
        """Count a confirmed change by the growth of the ISR."""
        self.isr_expands += growth > 0
        self.isr_shrinks += growth < 0

    def submit(self, partition: Proposer, change: IsrChange) -> None:
        key = (partition.topic_id, partition.topic_partition.partition)
        if key in self._pending or self._closed:
            partition.change_refused(change, ErrorCode.OPERATION_NOT_ATTEMPTED)
            return
        self._pending[key] = (partition, change)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        # Changes submitted in the same iteration of the loop share the request.
        await asyncio.sleep(0)
        while self._drop_outdated():
            sent = dict(self._pending)
            try:
                response = await self._alter_partition(self._request(sent))
                if response.error_code:
                    raise KafkaError(ErrorCode(response.error_code))
                again = self._handle_response(sent, response)
            except Exception as error:  # noqa: BLE001  otherwise these changes would never be sent
                await self._failed(error)
                continue
            self._failures = 0
            self._log_throttle.reset()
            if again:
                await asyncio.sleep(_BACKOFF.initial_seconds)

    async def _failed(self, error: Exception) -> None:
        trace = None if isinstance(error, KafkaError) else error
        if self._log_throttle.is_due(self._broker.clock.monotonic(), str(error)):
            logger.warning("AlterPartition failed, ISR changes are retried: %s", error, exc_info=trace)
        self._failures += 1
        await asyncio.sleep(_BACKOFF.seconds(self._failures))

    def _drop_outdated(self) -> bool:
        """Drop withdrawn changes; return whether any are left."""
        self._pending = {key: each for key, each in self._pending.items() if each[0].still_wants(each[1])}
        return bool(self._pending)

    def _request(self, sent: dict[tuple[TopicId, int], tuple[Proposer, IsrChange]]) -> AlterPartitionRequest:
        topics: dict[TopicId, RequestTopicData] = {}
        for (topic_id, index), (_, change) in sent.items():
            topic = topics.setdefault(topic_id, RequestTopicData(topic_id=topic_id))
            topic.partitions.append(
                RequestPartitionData(
                    partition_index=index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=member, broker_epoch=epoch)
                        for member, epoch in zip(change.isr, change.broker_epochs, strict=True)
                    ],
                    leader_recovery_state=RECOVERED,
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker.id, broker_epoch=self._broker.epoch(), topics=list(topics.values())
        )

    def _handle_response(
        self, sent: dict[tuple[TopicId, int], tuple[Proposer, IsrChange]], response: AlterPartitionResponse
    ) -> bool:
        """Notify the partitions of the decisions; return whether some changes must be sent again."""
        answers = {
            (topic.topic_id, each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        again = False
        for key, (partition, change) in sent.items():
            answer = answers.get(key)
            if answer is None:
                again = True
                continue
            code = ErrorCode(answer.error_code)
            self.refused += code is not ErrorCode.NONE
            if code and partition.change_refused(change, code):
                again = True
                continue
            self._pending.pop(key, None)
            if not code:
                partition.change_made(change, answer)
        return again
