"""InitProducerId (key 22), versions 0 to 6 (KIP-98): a producer id, with or without transactions.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible
- 3: the current id and epoch, to recover from an error (KIP-360)
- 4: PRODUCER_FENCED (KIP-588)
- 5: TRANSACTION_ABORTABLE (KIP-890)
- 6: two-phase commit (KIP-939); unstable, announced only with `unstable.api.versions.enable`

Ids are allocated in blocks by the controller (KIP-730), so every id is unique. For a transactional id the
transaction coordinator decides the id and the epoch.

Requires WRITE on TRANSACTIONAL_ID, with two-phase commit also TWO_PHASE_COMMIT on TRANSACTIONAL_ID. Without a
transactional id: IDEMPOTENT_WRITE on CLUSTER, or WRITE on TOPIC for any topic.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.security.acl.permissions import (
    IDEMPOTENT_WRITE,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from moldau.server.brokers.producer_ids import ProducerIds
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.transaction_partitions import error_for_version
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import NodeSettings
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.context import ProducerResponse, TransactionSettings
from moldau.transactions.init_producer_id import InitProducerId, check_request
from moldau.transactions.state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_FENCED_SINCE = 4


async def handle(
    transactions: TransactionCoordinator,
    producer_ids: ProducerIds,
    settings: NodeSettings,
    context: RequestContext,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse:
    try:
        _authorize(context, request)
        answer = await _initialize(transactions, producer_ids, settings, request)
    except KafkaError as error:
        answer = ProducerResponse(error.code)
    return InitProducerIdResponse(
        error_code=error_for_version(answer.error, context.api_version, _FENCED_SINCE),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def _authorize(context: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
        if request.enable2_pc:
            context.require(TWO_PHASE_COMMIT, request.transactional_id)
    elif not context.allows(IDEMPOTENT_WRITE, log_denied=False) and not context.allows_any(*WRITE_TOPIC):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


async def _initialize(
    transactions: TransactionCoordinator,
    producer_ids: ProducerIds,
    settings: NodeSettings,
    request: InitProducerIdRequest,
) -> ProducerResponse:
    expected = _expected(request)
    if request.transactional_id is None:
        return ProducerResponse(producer_id=await producer_ids.next(), producer_epoch=0)
    asked = check_request(
        InitProducerId(
            request.transactional_id,
            request.transaction_timeout_ms,
            expected,
            request.enable2_pc,
            request.keep_prepared_txn,
        ),
        TransactionSettings.from_config(settings.config),
    )
    return await transactions.decide(asked.transactional_id, lambda shard: shard.init_producer_id(asked))


def _expected(request: InitProducerIdRequest) -> Producer | None:
    no_id, no_epoch = request.producer_id == NO_PRODUCER_ID, request.producer_epoch == NO_PRODUCER_EPOCH
    if no_id != no_epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return None if no_id else Producer(request.producer_id, request.producer_epoch)
