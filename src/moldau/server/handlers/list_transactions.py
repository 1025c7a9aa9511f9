"""ListTransactions (key 66), versions 0 to 2 (KIP-664): the transactions that this node coordinates.

- 1: minimum duration (KIP-994)
- 2: transactional id pattern (KIP-1152)

Lists the transactional ids with DESCRIBE on TRANSACTIONAL_ID.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from moldau.security.acl.permissions import DESCRIBE_TRANSACTIONAL_ID
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.dispatch.context import RequestContext
from moldau.transactions.listing import TransactionFilter


async def handle(
    transactions: TransactionCoordinator, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    try:
        wanted = TransactionFilter(
            request.state_filters,
            request.producer_id_filters,
            request.duration_filter,
            request.transactional_id_pattern,
        )
        found = await transactions.read_all(lambda shard: shard.list(wanted))
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=wanted.unknown_states,
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.status.title,
            )
            for transactions in found
            for each in transactions
            if context.allows(DESCRIBE_TRANSACTIONAL_ID, each.transactional_id)
        ],
    )
