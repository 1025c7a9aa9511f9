"""AddPartitionsToTxn (key 24), versions 0 to 5 (KIP-98): adds partitions to transactions.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: PRODUCER_FENCED (KIP-588)
- 3: flexible
- 4: sent by brokers, for several transactions, optionally only to verify (KIP-890)
- 5: TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

import asyncio

from moldau.base.ids import TopicPartition
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
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
        asked = (_add(transaction_partitions, each, TRANSACTION_V2, version) for each in request.transactions)
        return AddPartitionsToTxnResponse(results_by_transaction=list(await asyncio.gather(*asked)))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    result = await _add(transaction_partitions, transaction, 0, version)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


async def _add(
    transaction_partitions: TransactionPartitions,
    asked: AddPartitionsToTxnTransaction,
    client_version: int,
    version: int,
) -> AddPartitionsToTxnResult:
    errors = await transaction_partitions.add(
        asked.transactional_id,
        Producer(asked.producer_id, asked.producer_epoch),
        (TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions),
        client_version,
        verify_only=asked.verify_only,
    )
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id, topic_results=_results(errors, version)
    )


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
