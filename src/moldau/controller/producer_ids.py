"""AllocateProducerIds: allocates blocks of producer ids to brokers (KIP-730)."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.brokers.lifecycle import check_broker_epoch
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.stored.metadata import ProducerIdsRecord
from moldau.statemachine.decision import Decision

BLOCK_SIZE = 1_000
_MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest, context: DecisionContext
) -> Decision[MetadataRecord, AllocateProducerIdsResponse]:
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    start = state.image.next_producer_id or 0
    if start > _MAX_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    return Decision(
        [record], AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    )
