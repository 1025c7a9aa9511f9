"""Envelope (key 58), version 0 (KIP-590): a client's request that a broker forwards to the active controller.

The request inside is handled like any other of this listener, with the principal and the address of the
client. An inactive controller answers NOT_CONTROLLER in the envelope itself, so that the broker looks for
the active one.

Requires CLUSTER_ACTION on CLUSTER of the broker that forwards; the request inside requires the permissions of
its API.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connection import CloseConnection
from moldau.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from moldau.protocol.schema import Message
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.envelopes import decode_forwarded, unwrap_request, wrap_response
from moldau.server.dispatch.context import Pending, RequestContext, ServedApi
from moldau.server.dispatch.dispatcher import failure


async def handle(context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    context.require(CLUSTER_ACTION)
    forwarded, header, body = unwrap_request(context, request)
    served = context.listener.apis.get(header.api_key)
    if served is None or not served.serves(header.api_version):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The forwarded request is not served here.")
    response = await _respond(served, forwarded, decode_forwarded(request, header, body))
    return wrap_response(header, response)


async def _respond(served: ServedApi, context: RequestContext, request: Message) -> Message:
    try:
        result = context.listener.handlers[context.api_key](context, request)
        if isinstance(result, Pending):
            result = result.response
        response = result if result is None or isinstance(result, Message) else await result
    except Exception as error:
        if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
            raise
        return _failure(served, context.api_version, request, error)
    if response is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A forwarded request must have a response.")
    return response


def _failure(served: ServedApi, version: int, request: Message, error: Exception) -> Message:
    try:
        return failure(served, version, request, error)
    except CloseConnection as reason:
        # Only the client's connection may be closed; other clients' requests share this one.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(reason)) from reason
