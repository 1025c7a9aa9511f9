"""Produce inside a transaction: its coordinator hears of a partition before the first batch is written there.

What it answers may refuse single partitions. Errors that old producers do not know how to retry become
NOT_ENOUGH_REPLICAS, which they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.messages.produce import ProduceRequest, TopicProduceData
from moldau.protocol.records import BatchHeader, read_batch_header
from moldau.replication.partition import Partition
from moldau.server.coordinators.verification import (
    Verified,
    begin,
    is_required,
    produce_operation,
    verify_with_retries,
)
from moldau.statemachine.coordinator_records import Producer
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

if TYPE_CHECKING:
    from moldau.server.node import Node

#: Errors of the coordinator that only waiting helps against.
_NOT_READY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class NotInTransaction(KafkaError):
    """Refused by the coordinator, before the log was asked."""


Find = Callable[[TopicProduceData, int], Partition]


class Membership:
    """Which partitions of one request may be written, as far as transactions go."""

    __slots__ = (
        "_node",
        "_operation",
        "_producer",
        "_required",
        "_sequences",
        "_transactional_id",
        "_verified",
    )

    def __init__(self, node: Node, version: int, request: ProduceRequest, find: Find) -> None:
        """KafkaError when the request as a whole makes no sense."""
        if request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        self._node = node
        self._transactional_id = request.transactional_id
        self._operation = produce_operation(version)
        self._sequences: dict[TopicPartition, int] = {}
        producers = set()
        for topic_partition, header in _transactional_batches(request, find):
            producers.add(Producer(header.producer_id, header.producer_epoch))
            self._sequences[topic_partition] = header.base_sequence
        if len(producers) > 1:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        self._producer = producers.pop() if producers else Producer(-1, -1)
        self._required = is_required(node, self._operation)
        self._verified = Verified({}, {})

    def begin(self) -> bool:
        """Whether everything is known already: the transaction is open in every log."""
        if self._required:
            self._verified = begin(self._node, self._producer, self._sequences, self._operation)
        return not self._verified.guards

    async def ask(self) -> None:
        self._verified = await verify_with_retries(
            self._node, self._transactional_id, self._producer, self._sequences, self._operation
        )

    def guard(self, topic_partition: TopicPartition) -> Guard | None:
        """What the log is to be shown; KafkaError when the partition may not be written."""
        if not self._required:
            return NOT_REQUIRED
        code = self._verified.errors.get(topic_partition)
        if code is not None:
            raise self._refusal(code)
        return self._verified.guards.get(topic_partition)

    def _refusal(self, code: ErrorCode) -> KafkaError:
        busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._operation.adds_partitions
        if code in _NOT_READY or busy:
            return NotInTransaction(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"whether the partition belongs to the transaction could not be found out: {code.name}",
            )
        if code is ErrorCode.INVALID_TXN_STATE:
            return NotInTransaction(code, "the partition was not added to the transaction")
        return NotInTransaction(code)


def _transactional_batches(
    request: ProduceRequest, find: Find
) -> Iterator[tuple[TopicPartition, BatchHeader]]:
    """Of the partitions that exist; what else is wrong is found when they are written."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                header = read_batch_header(data.records or b"")
                if header.is_transactional and header.has_producer_id:
                    yield find(topic, data.index).topic_partition, header
            except (CorruptBatch, KafkaError):
                continue
