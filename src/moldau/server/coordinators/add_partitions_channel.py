"""AddPartitionsToTxn requests to transaction coordinators on other brokers, several transactions in each.

The leader of a partition sends them for the producer that writes to it (KIP-890): to add the partition, or to
verify that the producer has added it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.statemachine.coordinator_records import Producer

PartitionErrors = dict[TopicPartition, ErrorCode]


class AddPartitions(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: Sequence[TopicPartition]
    verify_only: bool


def add_partitions_channel(peers: BrokerPeers) -> BatchedCalls[AddPartitions, PartitionErrors]:
    """Batch AddPartitionsToTxn requests. Responses name transactional ids, so a request has each id once."""
    return BatchedCalls(peers, pack=_pack, unpack=_unpack, identity=lambda request: request.transactional_id)


def _pack(requests: Sequence[AddPartitions]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in requests])


def _transaction(request: AddPartitions) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in request.partitions:
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer.id,
        producer_epoch=request.producer.epoch,
        verify_only=request.verify_only,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
    )


def _unpack(requests: Sequence[AddPartitions], response: AddPartitionsToTxnResponse) -> list[PartitionErrors]:
    if response.error_code != ErrorCode.NONE:
        # Authorization between brokers is no business of the producer.
        code = ErrorCode.of(response.error_code)
        denied = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise KafkaError(ErrorCode.INVALID_TXN_STATE if denied else code)
    found = {
        result.transactional_id: {
            TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
    try:
        return [found[each.transactional_id] for each in requests]
    except KeyError as error:
        raise missing(error) from error
