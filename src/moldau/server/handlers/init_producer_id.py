"""InitProducerId (key 22), versions 0 to 5: an id for an idempotent producer.

Ids come in blocks that the controller hands out and records, so none is ever given twice. With a
transactional id the answer is UNSUPPORTED_VERSION until there is a transaction coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


async def handle(
    node: Node, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    half_known = (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
    if request.transactional_id == "" or half_known:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    try:
        producer_id = await node.producer_ids.next()
    except KafkaError as error:
        return _refused(error.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
