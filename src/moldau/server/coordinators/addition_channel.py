"""Partitions that join transactions coordinated by another broker: AddPartitionsToTxn, many in one request.

The leader of a partition asks on behalf of the producer that writes there, to add the partition or only to
see that it was added.
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


class Addition(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: Sequence[TopicPartition]
    verify_only: bool


def addition_channel(peers: BrokerPeers) -> BatchedCalls[Addition, PartitionErrors]:
    """Answers come by transactional id, so a request has each id once."""
    return BatchedCalls(peers, pack=_pack, unpack=_unpack, identity=lambda asked: asked.transactional_id)


def _pack(additions: Sequence[Addition]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in additions])


def _transaction(asked: Addition) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in asked.partitions:
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnTransaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.producer.id,
        producer_epoch=asked.producer.epoch,
        verify_only=asked.verify_only,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
    )


def _unpack(additions: Sequence[Addition], response: AddPartitionsToTxnResponse) -> list[PartitionErrors]:
    if response.error_code != ErrorCode.NONE:
        # Producers have no use for what brokers may not do among themselves.
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
        return [found[each.transactional_id] for each in additions]
    except KeyError as error:
        raise missing(error) from error
