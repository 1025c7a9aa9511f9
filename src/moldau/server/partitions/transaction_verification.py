"""Transaction verification of one produce request (KIP-890).

Before the first batch of a transaction is appended to a partition, the transaction coordinator adds or
verifies the partition, and may refuse it. Errors that older producers do not retry become
NOT_ENOUGH_REPLICAS, which they do retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.messages.produce import ProduceRequest, TopicProduceData
from moldau.protocol.records import BatchHeader, read_batch_header
from moldau.replication.partition import Partition
from moldau.server.coordinators.verification import TransactionVerifier, Verified, produce_operation
from moldau.statemachine.coordinator_records import Producer
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

#: Coordinator errors that the producer can only retry.
_RETRIABLE = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class VerificationFailed(KafkaError):
    """The coordinator refused the partition; nothing was appended."""


FindPartition = Callable[[TopicProduceData, int], Partition]


class TransactionVerification:
    """The partitions of one request that the transaction may write to."""

    __slots__ = (
        "_operation",
        "_producer",
        "_required",
        "_sequences",
        "_transactional_id",
        "_verified",
        "_verifier",
    )

    def __init__(
        self, verifier: TransactionVerifier, version: int, request: ProduceRequest, find: FindPartition
    ) -> None:
        """Raise KafkaError if the request as a whole is invalid."""
        if request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        self._verifier = verifier
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
        self._required = verifier.is_required(self._operation)
        self._verified = Verified({}, {})

    def begin(self) -> bool:
        """Return whether no verification is needed: the transaction is open in every log."""
        if self._required:
            self._verified = self._verifier.begin(self._producer, self._sequences, self._operation)
        return not self._verified.guards

    async def verify(self) -> None:
        self._verified = await self._verifier.verify_with_retries(
            self._transactional_id, self._producer, self._sequences, self._operation
        )

    def guard(self, topic_partition: TopicPartition) -> Guard | None:
        """Return the guard for the append; raise KafkaError if the partition was refused."""
        if not self._required:
            return NOT_REQUIRED
        code = self._verified.errors.get(topic_partition)
        if code is not None:
            raise self._refusal(code)
        return self._verified.guards.get(topic_partition)

    def _refusal(self, code: ErrorCode) -> KafkaError:
        busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._operation.adds_partitions
        if code in _RETRIABLE or busy:
            return VerificationFailed(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the partition could not be verified with the transaction coordinator: {code.name}",
            )
        if code is ErrorCode.INVALID_TXN_STATE:
            return VerificationFailed(code, "the partition was not added to the transaction")
        return VerificationFailed(code)


def _transactional_batches(
    request: ProduceRequest, find: FindPartition
) -> Iterator[tuple[TopicPartition, BatchHeader]]:
    """Yield the batches of existing partitions; the append reports the errors of the others."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                header = read_batch_header(data.records or b"")
                if header.is_transactional and header.has_producer_id:
                    yield find(topic, data.index).topic_partition, header
            except (CorruptBatch, KafkaError):
                continue
