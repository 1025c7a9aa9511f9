"""Envelope (key 58), version 0: a client's request that a broker passes on to the active controller.

The request inside is served like any other of this listener, in the name of whoever sent it. That this
controller is not active is told by the envelope itself, so that the broker looks for the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connection import CloseConnection
from moldau.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from moldau.protocol.schema import Message
from moldau.server.controller.envelopes import decode_forwarded, unwrap_request, wrap_response
from moldau.server.dispatch.context import RequestContext
from moldau.server.dispatch.dispatcher import failure

if TYPE_CHECKING:
    from moldau.server.dispatch.apis import ServedApi
    from moldau.server.node import Node


async def handle(node: Node, context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    forwarded, header, body = unwrap_request(context, request)
    served = node.apis_of(context.listener_name).get(header.api_key)
    if served is None or not served.serves(header.api_version):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the forwarded request is not served here")
    response = await _answer(node, served, forwarded, decode_forwarded(request, header, body))
    return wrap_response(header, response)


async def _answer(node: Node, served: ServedApi, context: RequestContext, request: Message) -> Message:
    try:
        response = served.handle(node, context, request)
        if response is not None and not isinstance(response, Message):
            response = await response
    except Exception as error:
        if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
            raise
        return _failure(served, context.api_version, request, error)
    if response is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a forwarded request without an answer")
    return response


def _failure(served: ServedApi, version: int, request: Message, error: Exception) -> Message:
    try:
        return failure(served, version, request, error)
    except CloseConnection as reason:
        # That is between the client and its broker: here others' requests come on the same connection.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(reason)) from reason
