"""AddPartitionsToTxn (key 24), versions 0 to 5 (KIP-98): adds partitions to transactions.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: PRODUCER_FENCED (KIP-588)
- 3: flexible
- 4: sent by brokers, for several transactions, optionally only to verify (KIP-890)
- 5: TRANSACTION_ABORTABLE (KIP-890)

Requires WRITE on TRANSACTIONAL_ID, and WRITE on TOPIC for each topic: if one lacks it, its partitions get
TOPIC_AUTHORIZATION_FAILED and the others OPERATION_NOT_ATTEMPTED. From version 4: CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode
from moldau.base.ids import INTERNAL_TOPICS, TopicPartition
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from moldau.security.acl.permissions import CLUSTER_ACTION, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.server.coordinators.add_partitions_channel import PartitionErrors
from moldau.server.coordinators.transaction_partitions import (
    TRANSACTION_V2,
    TransactionPartitions,
    error_for_version,
)
from moldau.server.dispatch.context import RequestContext
from moldau.statemachine.coordinator_records import Producer

_BATCHED_SINCE = 4
_FENCED_SINCE = 2


async def handle(
    transaction_partitions: TransactionPartitions, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    version = context.api_version
    if version >= _BATCHED_SINCE:
        context.require(CLUSTER_ACTION)
        asked = (_add(transaction_partitions, each, TRANSACTION_V2, version) for each in request.transactions)
        return AddPartitionsToTxnResponse(results_by_transaction=list(await asyncio.gather(*asked)))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if not context.allows(WRITE_TRANSACTIONAL_ID, transaction.transactional_id):
        errors = dict.fromkeys(_partitions(transaction), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors, version))
    names = {topic.name for topic in transaction.topics}
    denied = context.unauthorized(WRITE_TOPIC, names - INTERNAL_TOPICS) | (names & INTERNAL_TOPICS)
    result = await _add(transaction_partitions, transaction, 0, version, denied)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


async def _add(
    transaction_partitions: TransactionPartitions,
    asked: AddPartitionsToTxnTransaction,
    client_version: int,
    version: int,
    denied: AbstractSet[str] = frozenset(),
) -> AddPartitionsToTxnResult:
    errors = await transaction_partitions.add(
        asked.transactional_id,
        Producer(asked.producer_id, asked.producer_epoch),
        _partitions(asked),
        client_version,
        verify_only=asked.verify_only,
        denied=denied,
    )
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id, topic_results=_results(errors, version)
    )


def _partitions(asked: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]


def _results(errors: PartitionErrors, version: int) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for topic, index in sorted(errors):
        code = error_for_version(errors[TopicPartition(topic, index)], version, _FENCED_SINCE)
        result = AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        topics.setdefault(topic, []).append(result)
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in topics.items()
    ]
