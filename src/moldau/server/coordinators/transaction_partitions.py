"""Adds partitions to transactions, or verifies that they were added, at the transaction coordinator.

The coordinator is this node or another broker. Used by AddPartitionsToTxn and by transaction verification
(KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.server.coordinators.add_partitions_channel import AddPartitions, PartitionErrors
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.publisher import MetadataPublisher
from moldau.statemachine.coordinator_records import Producer

#: `transaction.version` of clients whose partitions are added by brokers.
TRANSACTION_V2 = 2
#: Errors of the connection to the coordinator as producers know them.
_CONNECTION_ERRORS = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class TransactionPartitions:
    def __init__(
        self, node_id: int, metadata: MetadataPublisher, coordinator: TransactionCoordinator
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._coordinator = coordinator

    async def add_or_verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        *,
        verify_only: bool,
    ) -> PartitionErrors:
        """Add or verify partitions that this node leads, at the coordinator wherever it is."""
        wanted = list(partitions)
        leader = self._coordinator.leader_of(transactional_id)
        if leader is None:
            return dict.fromkeys(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if leader == self._node_id:
            return await self.add(transactional_id, producer, wanted, TRANSACTION_V2, verify_only=verify_only)
        try:
            return await self._coordinator.add_partitions_channel.ask(
                leader, AddPartitions(transactional_id, producer, wanted, verify_only)
            )
        except KafkaError as error:
            return dict.fromkeys(wanted, _CONNECTION_ERRORS.get(error.code, error.code))

    async def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        *,
        verify_only: bool = False,
        denied: AbstractSet[str] = frozenset(),
    ) -> PartitionErrors:
        """Add or verify partitions as the coordinator, all or none.

        If one does not exist, or its topic is one of `denied`, the others get OPERATION_NOT_ATTEMPTED.
        """
        wanted = frozenset(partitions)
        refused = self._refused(wanted, denied)
        if refused:
            return dict.fromkeys(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
        try:
            if not transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            if verify_only:
                return await self._coordinator.read(
                    transactional_id,
                    lambda shard: shard.verify_partitions(transactional_id, producer, wanted),
                )
            await self._coordinator.write(
                transactional_id,
                lambda shard: shard.add_partitions(transactional_id, producer, wanted, client_version),
            )
        except KafkaError as error:
            return dict.fromkeys(wanted, error.code)
        return dict.fromkeys(wanted, ErrorCode.NONE)

    def _refused(self, wanted: Iterable[TopicPartition], denied: AbstractSet[str]) -> PartitionErrors:
        refused: PartitionErrors = {}
        for each in wanted:
            if each.topic in denied:
                refused[each] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not _exists(self._metadata.image, each):
                refused[each] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused


def error_for_version(code: ErrorCode, version: int, producer_fenced_since: int) -> ErrorCode:
    """Return INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED to clients of older versions."""
    fenced = code is ErrorCode.PRODUCER_FENCED and version < producer_fenced_since
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else code


def _exists(image: MetadataImage, topic_partition: TopicPartition) -> bool:
    topic = image.topics.by_name.get(topic_partition.topic)
    return topic is not None and topic_partition.partition in topic.partitions
