"""EndTxn (key 26), versions 0 to 5: a producer commits or aborts its transaction.

The answer comes when the decision is safe; partitions hear of it right after. From version 5 on it holds the
epoch, and the id, that the producer has from now on.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.transaction_partitions import TRANSACTION_V2, error_for_version
from moldau.server.dispatch.context import RequestContext
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.context import ProducerResponse
from moldau.transactions.end_txn import EndTxn

#: Who uses this version keeps to an epoch per transaction.
_IMPLICIT_SINCE = 5
_FENCED_SINCE = 2


async def handle(
    transactions: TransactionCoordinator, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse:
    version = context.api_version
    asked = EndTxn(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        TRANSACTION_V2 if version >= _IMPLICIT_SINCE else 0,
    )
    try:
        if not asked.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        answer = await transactions.decide(asked.transactional_id, lambda shard: shard.end_transaction(asked))
    except KafkaError as error:
        answer = ProducerResponse(error.code)
    return EndTxnResponse(
        error_code=error_for_version(answer.error, version, _FENCED_SINCE),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )
