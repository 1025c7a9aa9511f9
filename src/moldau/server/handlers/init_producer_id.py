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


async def handle(
    node: Node, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return InitProducerIdResponse(producer_id=await node.producer_ids.next(), producer_epoch=0)
