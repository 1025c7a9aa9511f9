"""DescribeTransactions (key 65), version 0 (KIP-664): the state of transactional ids.

Requires DESCRIBE on TRANSACTIONAL_ID for each id; without it the id gets
TRANSACTIONAL_ID_AUTHORIZATION_FAILED. Topics without DESCRIBE on TOPIC are left out.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from moldau.security.acl.permissions import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.dispatch.context import RequestContext
from moldau.transactions.state import Transaction


async def handle(
    transactions: TransactionCoordinator, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    states = [await _describe(transactions, context, each) for each in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=states)


async def _describe(
    transactions: TransactionCoordinator, context: RequestContext, transactional_id: str
) -> TransactionState:
    try:
        context.require(DESCRIBE_TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        found = await transactions.read(transactional_id, lambda shard: shard.describe(transactional_id))
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.status.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=_topics(context, found),
    )


def _topics(context: RequestContext, transaction: Transaction) -> list[TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    hidden = context.unauthorized(DESCRIBE_TOPIC, topics)
    return [
        TopicData(topic=name, partitions=indexes) for name, indexes in topics.items() if name not in hidden
    ]
