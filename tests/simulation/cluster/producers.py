"""Producers of every kind, each a task that runs until the simulation stops.

One batch at a time is sent and resent, byte for byte, until its outcome is known: therefore an idempotent
producer's records must be stored once and in order.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from random import Random

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.testing.simulation.clock import EPOCH_MS
from tests.harness.wire.batches import batch
from tests.simulation.cluster.client import GROUP, TRANSACTION, ClusterClient, check
from tests.simulation.cluster.history import History, Outcome, Transaction

_PRODUCE_VERSION, _INIT_VERSION, _END_VERSION, _OFFSETS_VERSION = 12, 4, 5, 5
_TRANSACTIONAL = 0x10
#: Before the start of the clocks, so that a node with a slow clock does not refuse it.
_TIMESTAMP = EPOCH_MS - 6 * 3_600_000
_TRANSACTION_TIMEOUT_MS = 60_000


class Producer:
    """A producer with `acks`, without idempotence: records may be duplicated and reordered."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        history: History,
        random: Random,
        targets: list[TopicPartition],
    ) -> None:
        self.name = name
        self.acks = -1
        self._client = client
        self._story = history
        self._random = random
        self._targets = targets
        self._numbers = itertools.count()

    async def run(self) -> None:
        while not self._story.stopping:
            await self.send()
            await asyncio.sleep(self._random.choice((0.0, 0.2, 0.6, 1.2)))

    async def send(self) -> None:
        topic_partition = self._random.choice(self._targets)
        values = self._values(topic_partition)
        records = batch([(b"k", value) for value in values], timestamp=_TIMESTAMP)
        offset = await self._client.persist(lambda: self._produce(topic_partition, records))
        self._acknowledge(topic_partition, offset, values)

    def _values(self, topic_partition: TopicPartition, *, ordered: bool = False) -> list[bytes]:
        count = self._random.choice((1, 1, 2, 3))
        values = [f"{self.name}/{next(self._numbers)}".encode() for _ in range(count)]
        for value in values:
            self._story.sends(topic_partition, value, self.name if ordered else None)
        return values

    def _acknowledge(self, topic_partition: TopicPartition, offset: int, values: list[bytes]) -> None:
        if self.acks == -1:
            for number, value in enumerate(values):
                self._story.acknowledge(topic_partition, offset + number if offset >= 0 else -1, value)

    async def _produce(
        self, topic_partition: TopicPartition, records: bytes, transactional_id: str | None = None
    ) -> int:
        """Produce a batch and return its offset; -1 if it is stored at an unknown offset."""
        data = PartitionProduceData(index=topic_partition.partition, records=memoryview(records))
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=self.acks,
            timeout_ms=3000,
            topic_data=[TopicProduceData(name=topic_partition.topic, partition_data=[data])],
        )
        answer = await self._client.to_leader(topic_partition, request, _PRODUCE_VERSION)
        partition = answer.responses[0].partition_responses[0]
        if partition.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1
        check(partition.error_code)
        return int(partition.base_offset)


class LooseProducer(Producer):
    """A producer with `acks=1`: its records may be lost with the leader."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        history: History,
        random: Random,
        targets: list[TopicPartition],
    ) -> None:
        super().__init__(name, client, history, random, targets)
        self.acks = 1


class IdempotentProducer(Producer):
    """An idempotent producer: every batch once and in order. An out-of-order sequence means that the
    cluster has lost a batch that it had acknowledged."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        history: History,
        random: Random,
        targets: list[TopicPartition],
    ) -> None:
        super().__init__(name, client, history, random, targets)
        self._id, self._epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = defaultdict(int)

    async def send(self) -> None:
        if self._id < 0:
            await self._client.persist(lambda: self._init(None))
        topic_partition = self._random.choice(self._targets)
        values = self._values(topic_partition, ordered=True)
        records = self._batch(topic_partition, values)
        offset = await self._client.persist(lambda: self._produce(topic_partition, records))
        self._acknowledge(topic_partition, offset, values)

    def _batch(self, topic_partition: TopicPartition, values: list[bytes], attributes: int = 0) -> bytes:
        sequence = self._sequences[topic_partition]
        self._sequences[topic_partition] += len(values)
        return batch(
            [(b"k", value) for value in values],
            timestamp=_TIMESTAMP,
            attributes=attributes,
            producer_id=self._id,
            producer_epoch=self._epoch,
            sequence=sequence,
        )

    async def _init(self, transactional_id: str | None) -> None:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        if transactional_id is None:
            answer = await self._client.call_any(request, _INIT_VERSION)
        else:
            answer = await self._client.to_coordinator(TRANSACTION, transactional_id, request, _INIT_VERSION)
        check(answer.error_code)
        self._is(answer.producer_id, answer.producer_epoch)

    def _is(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._id, self._epoch):
            self._sequences.clear()
        self._id, self._epoch = producer_id, epoch


class TransactionalProducer(IdempotentProducer):
    """Write to several partitions and commit offsets of a group of the same name, atomically."""

    async def run(self) -> None:
        await self._client.persist(lambda: self._init(self.name))
        await super().run()
        # InitProducerId completes an open transaction.
        await self._client.persist(lambda: self._init(self.name))

    async def send(self) -> None:
        transaction = Transaction(f"{self.name}#{next(self._numbers)}")
        self._story.by_producer[self.name].append(transaction)
        try:
            await self._fill(transaction)
            commit = self._random.random() < 0.7
            if commit:
                # From here on the outcome is unknown until a response arrives.
                transaction.outcome = Outcome.UNKNOWN
            await self._client.persist(lambda: self._end(commit))
        except KafkaError:
            await self._client.persist(lambda: self._init(self.name))
            if transaction.outcome is Outcome.OPEN:
                transaction.outcome = Outcome.ABORTED
            self._story.counts["fenced"] += 1
            return
        transaction.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        self._story.counts[transaction.outcome.value] += 1

    async def _fill(self, transaction: Transaction) -> None:
        for topic_partition in self._random.sample(self._targets, self._random.randint(1, 2)):
            values = self._values(topic_partition)
            for value in values:
                self._story.transactions[value] = transaction
                transaction.values.append((topic_partition, value))
            records = self._batch(topic_partition, values, _TRANSACTIONAL)
            await self._client.persist(lambda: self._produce(topic_partition, records, self.name))  # noqa: B023
        if self._random.random() < 0.6:
            transaction.offset = next(self._numbers)
            await self._client.persist(lambda: self._commit_offset(transaction.offset or 0))

    async def _commit_offset(self, offset: int) -> None:
        where = self._targets[0]
        asked = TxnOffsetCommitRequestPartition(
            partition_index=where.partition, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=self._id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequestTopic(name=where.topic, partitions=[asked])],
        )
        answer = await self._client.to_coordinator(GROUP, self.name, request, _OFFSETS_VERSION)
        check(answer.topics[0].partitions[0].error_code)

    async def _end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        answer = await self._client.to_coordinator(TRANSACTION, self.name, request, _END_VERSION)
        check(answer.error_code)
        self._is(answer.producer_id, answer.producer_epoch)
