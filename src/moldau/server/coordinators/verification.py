"""Transaction verification (KIP-890): the coordinator knows of a partition before its first batch is written.

A producer of the classic flow adds partitions itself (AddPartitionsToTxn), and the partition leader only
verifies that it did. With `transaction.version` 2 the leader adds the partition for the producer. The version
of the produce or commit request tells which flow a client uses. Later batches of the same transaction need
neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.add_partitions_channel import PartitionErrors
from moldau.server.coordinators.transaction_partitions import TransactionPartitions
from moldau.server.settings import NodeSettings
from moldau.statemachine.coordinator_records import Producer
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

_NO_SEQUENCE = -1
#: Verification errors as TxnOffsetCommit reports them.
_COORDINATOR_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


class SupportedOperation(NamedTuple):
    """The support for transactions in a client's version."""

    #: Partition leaders add the partitions of its transactions.
    adds_partitions: bool
    #: It understands TRANSACTION_ABORTABLE.
    knows_abortable: bool


#: Kafka's names for the three generations of clients.
DEFAULT_ERROR = SupportedOperation(adds_partitions=False, knows_abortable=False)
GENERIC_ERROR_SUPPORTED = SupportedOperation(adds_partitions=False, knows_abortable=True)
ADD_PARTITION = SupportedOperation(adds_partitions=True, knows_abortable=True)


def produce_operation(version: int) -> SupportedOperation:
    if version >= 12:
        return ADD_PARTITION
    return GENERIC_ERROR_SUPPORTED if version == 11 else DEFAULT_ERROR


def offset_commit_operation(version: int) -> SupportedOperation:
    if version >= 5:
        return ADD_PARTITION
    return GENERIC_ERROR_SUPPORTED if version == 4 else DEFAULT_ERROR


class Verified(NamedTuple):
    """By partition: the guard of its first batch, or the error that refuses it."""

    guards: dict[TopicPartition, Guard]
    errors: PartitionErrors


class TransactionVerifier:
    def __init__(
        self,
        replicas: ReplicaManager,
        partitions: TransactionPartitions,
        settings: NodeSettings,
        clock: Clock,
    ) -> None:
        self._replicas = replicas
        self._partitions = partitions
        self._settings = settings
        self._clock = clock

    def begin(
        self, producer: Producer, sequences: Mapping[TopicPartition, int], operation: SupportedOperation
    ) -> Verified:
        """Find the partitions to verify: those whose log has no open transaction of the producer."""
        guards: dict[TopicPartition, Guard] = {}
        errors: PartitionErrors = {}
        for each, sequence in sequences.items():
            try:
                log = self._replicas.by_name(*each).leader_log()
                guard = log.producer_state.begin_verification(
                    producer.id,
                    producer.epoch,
                    sequence,
                    epoch_per_transaction=operation.adds_partitions,
                    now_ms=self._clock.time_ms(),
                )
            except KafkaError as error:
                errors[each] = error.code
            else:
                if guard is not None:
                    guards[each] = guard
        return Verified(guards, errors)

    async def verify(
        self, transactional_id: str, producer: Producer, verified: Verified, operation: SupportedOperation
    ) -> Verified:
        """Add or verify the partitions found by `begin` at the coordinator."""
        codes = await self._partitions.add_or_verify(
            transactional_id, producer, verified.guards, verify_only=not operation.adds_partitions
        )
        errors = {
            each: _client_error(code, operation) for each, code in codes.items() if code is not ErrorCode.NONE
        }
        return Verified(verified.guards, {**verified.errors, **errors})

    async def verify_with_retries(
        self,
        transactional_id: str,
        producer: Producer,
        sequences: Mapping[TopicPartition, int],
        operation: SupportedOperation,
    ) -> Verified:
        """Run `begin` and `verify`; retry for a moment while the previous transaction is being completed."""
        loop = asyncio.get_running_loop()
        retry_ms = min(
            self._settings.config["add.partitions.to.txn.retry.backoff.max.ms"],
            self._settings.config["request.timeout.ms"],
        )
        deadline = loop.time() + retry_ms / 1000
        while True:
            verified = self.begin(producer, sequences, operation)
            if verified.guards:
                verified = await self.verify(transactional_id, producer, verified, operation)
            concurrent = ErrorCode.CONCURRENT_TRANSACTIONS in verified.errors.values()
            if not operation.adds_partitions or not concurrent or loop.time() >= deadline:
                return verified
            await asyncio.sleep(self._settings.config["add.partitions.to.txn.retry.backoff.ms"] / 1000)

    async def verify_offsets(
        self,
        transactional_id: str,
        producer: Producer,
        topic_partition: TopicPartition,
        operation: SupportedOperation,
    ) -> Guard | None:
        """Verify the group's partition of `__consumer_offsets`; raise KafkaError if refused."""
        if not self.is_required(operation):
            return NOT_REQUIRED
        verified = self.begin(producer, {topic_partition: _NO_SEQUENCE}, operation)
        if verified.guards:
            verified = await self.verify(transactional_id, producer, verified, operation)
        code = verified.errors.get(topic_partition)
        if code is not None:
            raise KafkaError(_COORDINATOR_ERRORS.get(code, code))
        return verified.guards.get(topic_partition)

    def check_guard(self, producer: Producer, topic_partition: TopicPartition, guard: Guard | None) -> None:
        """Check, right before offsets are written, that no marker was written since the verification."""
        if guard is None or guard is NOT_REQUIRED:
            return
        log = self._replicas.by_name(*topic_partition).leader_log()
        found = log.producer_state.verifications.get(producer.id)
        if found is None or found.guard is not guard:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)

    def is_required(self, operation: SupportedOperation) -> bool:
        """Verification can be disabled by `transaction.partition.verification.enable`; adding cannot."""
        return operation.adds_partitions or bool(
            self._settings.config["transaction.partition.verification.enable"]
        )


def _client_error(code: ErrorCode, operation: SupportedOperation) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not operation.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
