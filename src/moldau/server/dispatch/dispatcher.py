"""From a frame to a response: header, API table, decode, handler, encode.

The dispatcher is the one place where a `KafkaError` that a handler raises becomes a response, and where an
unexpected exception is logged and answered with UNKNOWN_SERVER_ERROR; the connection and the node continue.
A frame that cannot be read (unknown API or version, undecodable bytes) closes its connection, as in Kafka:
there is no response that the client could decode. ApiVersions is the exception of the protocol.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import failure_response
from moldau.network.connection import CloseConnection, Connection
from moldau.network.responses import Parts, Response
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader, decode_request_header, encode_response_header
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from moldau.protocol.schema import DecodeError, EncodeError, Message, decode_prefix, encode
from moldau.security.principal import ANONYMOUS
from moldau.server.dispatch.context import (
    ListenerContext,
    Pending,
    RequestContext,
    ServedApi,
)

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")


class ApiDispatcher:
    """Serves the requests of one listener."""

    def __init__(self, listener: ListenerContext, on_disconnect: Callable[[Connection], None]) -> None:
        self._listener = listener
        self._apis = listener.apis
        self._handlers = listener.handlers
        self._on_disconnect = on_disconnect

    def dispatch(self, connection: Connection, frame: memoryview) -> Response:
        try:
            header, offset = decode_request_header(frame)
            served = self._apis.get(header.api_key)
            if served is None or not served.serves(header.api_version):
                return Response(_not_served(served, header))
            # Trailing bytes are no error: some releases of librdkafka send a few bytes too many.
            request, _ = decode_prefix(served.api.request, frame, header.api_version, offset)
        except DecodeError as error:
            raise CloseConnection(f"a request cannot be decoded: {error}") from error
        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            self._listener,
            ANONYMOUS,
            connection.peer_host,
            connection,
            header.correlation_id,
        )
        return self._run(served, header, context, request)

    def disconnected(self, connection: Connection) -> None:
        self._on_disconnect(connection)

    def _run(
        self, served: ServedApi, header: RequestHeader, context: RequestContext, request: Message
    ) -> Response:
        try:
            result = self._handlers[header.api_key](context, request)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001  a bug in one handler must not stop the node
            result = failure(served, header.api_version, request, error)
        if result is None or isinstance(result, Message):
            return Response(_frame(header, result))
        if isinstance(result, Pending):
            if result.keeps_frame:
                context.connection.keep_frame()
            pending = self._later(served, header, request, result.response)
            return Response(pending=pending, overlapping=result.overlapping)
        return Response(pending=self._later(served, header, request, result))

    async def _later(
        self, served: ServedApi, header: RequestHeader, request: Message, result: Awaitable[Message | None]
    ) -> Parts:
        try:
            response = await result
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001  as above
            response = failure(served, header.api_version, request, error)
        return _frame(header, response)


def _not_served(served: ServedApi | None, header: RequestHeader) -> Parts:
    """Answer ApiVersions in an unknown version with the known versions, in version 0 (KIP-511).

    Any other API or version that is not served closes the connection.
    """
    if served is None:
        raise CloseConnection(f"API {header.api_key} is not served on this listener")
    if header.api_key != ApiKey.API_VERSIONS:
        raise CloseConnection(f"{served.api.name} version {header.api_version} is not served")
    versions = ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=served.min_version, max_version=served.max_version
    )
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[versions])
    return _frame(header._replace(api_version=0), response)


def _frame(header: RequestHeader, response: Message | None) -> Parts:
    """Encode a response; the result is empty if the client expects none."""
    if response is None:
        return ()
    try:
        body = encode(response, header.api_version)
    except EncodeError as error:
        logger.error("a response cannot be encoded in version %d: %.1000r", header.api_version, response)
        raise CloseConnection(f"a response cannot be encoded: {error}") from error
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    size = len(head)
    for part in body:
        size += len(part)
    if body and isinstance(body[0], bytes):
        return [_SIZE.pack(size) + head + body[0], *body[1:]]
    return [_SIZE.pack(size) + head, *body]


def failure(served: ServedApi, version: int, request: Message, error: Exception) -> Message:
    """Return the response to a request that failed as a whole."""
    if not isinstance(error, KafkaError):
        logger.error("%s failed: %.1000r", served.api.name, request, exc_info=error)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The server met an unexpected error.")
    per_item = failure_response(request, error)
    if per_item is not None:
        return per_item
    response: Any = served.api.response()
    fields = {field.name: field for field in response.FIELDS}
    if "error_code" not in fields or not fields["error_code"].versions.has(version):
        # A response that looks like success would be worse than none.
        raise CloseConnection(f"{served.api.name} failed with {error.code.name}: {error.message}")
    response.error_code = error.code
    if "error_message" in fields:
        response.error_message = error.message
    failed: Message = response
    return failed
