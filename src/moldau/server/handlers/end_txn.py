"""EndTxn (key 26), versions 0 to 5 (KIP-98): commits or aborts a transaction.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: PRODUCER_FENCED (KIP-588)
- 3: flexible
- 4: TRANSACTION_ABORTABLE (KIP-890)
- 5: the producer id and epoch of the next transaction (KIP-890)

The response is sent when the decision is committed; the markers are written after it.

Requires WRITE on TRANSACTIONAL_ID.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.security.acl.permissions import WRITE_TRANSACTIONAL_ID
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.transaction_partitions import TRANSACTION_V2, error_for_version
from moldau.server.dispatch.context import RequestContext
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.context import ProducerResponse
from moldau.transactions.end_txn import EndTxn

#: Clients of this version get a new epoch with every transaction.
_TRANSACTION_V2_SINCE = 5
_FENCED_SINCE = 2


async def handle(
    transactions: TransactionCoordinator, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse:
    version = context.api_version
    asked = EndTxn(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        TRANSACTION_V2 if version >= _TRANSACTION_V2_SINCE else 0,
    )
    try:
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
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
