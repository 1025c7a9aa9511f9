"""What the handlers of the transaction APIs have in common: asking the coordinator, wherever it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.server.coordinators.add_partitions_channel import AddPartitions, PartitionErrors
from moldau.statemachine.coordinator_records import Producer

if TYPE_CHECKING:
    from moldau.server.node import Node

#: The versions that brokers use among themselves come from clients of this `transaction.version`.
EPOCH_PER_TRANSACTION = 2
#: How producers hear of a coordinator that did not answer.
_UNANSWERED = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


async def join_or_verify(
    node: Node,
    transactional_id: str,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    *,
    verify_only: bool,
) -> PartitionErrors:
    """On behalf of a producer that writes here: add partitions to its transaction, or see that they are."""
    wanted = list(partitions)
    coordinator = node.coordinators.transactions
    leader = coordinator.leader_of(transactional_id)
    if leader is None:
        return dict.fromkeys(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if leader == node.id:
        return await add_partitions(
            node, transactional_id, producer, wanted, EPOCH_PER_TRANSACTION, verify_only=verify_only
        )
    try:
        return await coordinator.add_partitions_channel.ask(
            leader, AddPartitions(transactional_id, producer, wanted, verify_only)
        )
    except KafkaError as error:
        return dict.fromkeys(wanted, _UNANSWERED.get(error.code, error.code))


async def add_partitions(
    node: Node,
    transactional_id: str,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    client_version: int,
    *,
    verify_only: bool = False,
) -> PartitionErrors:
    """All or nothing: one that does not exist leaves the others OPERATION_NOT_ATTEMPTED."""
    wanted = frozenset(partitions)
    missing = {each for each in wanted if not _exists(node.image, each)}
    if missing:
        return {
            each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if each in missing
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for each in wanted
        }
    coordinator = node.coordinators.transactions
    try:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if verify_only:
            return await coordinator.read(
                transactional_id, lambda shard: shard.verify_partitions(transactional_id, producer, wanted)
            )
        await coordinator.write(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, producer, wanted, client_version),
        )
    except KafkaError as error:
        return dict.fromkeys(wanted, error.code)
    return dict.fromkeys(wanted, ErrorCode.NONE)


def for_version(code: ErrorCode, version: int, knows_fenced_since: int) -> ErrorCode:
    """Clients of old versions know PRODUCER_FENCED as INVALID_PRODUCER_EPOCH."""
    fenced = code is ErrorCode.PRODUCER_FENCED and version < knows_fenced_since
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else code


def _exists(image: MetadataImage, topic_partition: TopicPartition) -> bool:
    topic = image.topics.by_name.get(topic_partition.topic)
    return topic is not None and topic_partition.partition in topic.partitions
