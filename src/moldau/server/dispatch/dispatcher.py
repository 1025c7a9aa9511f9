"""From a frame to an answer: header, table of APIs, decode, handler, encode.

This is the one place where a `KafkaError` that a handler lets through becomes a response, and where an
unexpected exception is logged and answered with UNKNOWN_SERVER_ERROR; the connection and the node live on.
A frame that cannot be read (unknown API or version, bytes that do not decode) ends its connection, as in
Kafka: there is no answer a client could make sense of. ApiVersions is the exception the protocol names.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import failure_response
from moldau.network.connection import Answer, CloseConnection, Connection, Parts
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader, decode_request_header, encode_response_header
from moldau.protocol.schema import DecodeError, EncodeError, Message, decode_prefix, encode
from moldau.server.dispatch.api_versions import api_versions_response
from moldau.server.dispatch.context import ANONYMOUS, RequestContext

if TYPE_CHECKING:
    from moldau.server.dispatch.apis import ServedApi
    from moldau.server.node import Node

log = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")

Handler = Callable[["Node", RequestContext, Any], "Message | Awaitable[Message | None] | None"]


class ApiDispatcher:
    """Serves one listener with its table of APIs."""

    def __init__(self, node: Node, table: dict[int, ServedApi], security_protocol: str) -> None:
        self._node = node
        self._table = table
        self._security_protocol = security_protocol

    def dispatch(self, connection: Connection, frame: memoryview) -> Answer:
        try:
            header, offset = decode_request_header(frame)
            served = self._table.get(header.api_key)
            if served is None or not served.serves(header.api_version):
                return Answer(self._unserved(served, header))
            # What is left over is no error: some releases of librdkafka send a few bytes too many.
            request, _ = decode_prefix(served.api.request, frame, header.api_version, offset)
        except DecodeError as error:
            raise CloseConnection(f"a request cannot be read: {error}") from error
        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            connection.listener_name,
            self._security_protocol,
            ANONYMOUS,
            connection.peer_host,
            connection,
            header.correlation_id,
        )
        return self._run(served, header, context, request)

    def disconnected(self, connection: Connection) -> None:
        self._node.disconnected(connection)

    def _unserved(self, served: ServedApi | None, header: RequestHeader) -> Parts:
        """ApiVersions in a version we do not know gets an answer; anything else ends the connection."""
        if served is None:
            raise CloseConnection(f"API {header.api_key} is not served on this listener")
        if header.api_key != ApiKey.API_VERSIONS:
            raise CloseConnection(f"{served.api.name} version {header.api_version} is not served")
        return self._unsupported_api_versions(served, header)

    def _run(
        self, served: ServedApi, header: RequestHeader, context: RequestContext, request: Message
    ) -> Answer:
        try:
            result = served.handle(self._node, context, request)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001  a bug in one handler must not take the node down
            result = failure(served, header.api_version, request, error)
        if result is None or isinstance(result, Message):
            return Answer(_frame(header, result))
        produce = header.api_key == ApiKey.PRODUCE
        if produce and not getattr(result, "frame_done", False):
            context.connection.keep_frame()
        overlapping = produce and not getattr(result, "in_order", False)
        return Answer(pending=self._later(served, header, request, result), overlapping=overlapping)

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

    def _unsupported_api_versions(self, served: ServedApi, header: RequestHeader) -> Parts:
        """Asked in a version we do not know: version 0 of the answer tells which ones we do, no more."""
        node = self._node
        response = api_versions_response(
            0, {ApiKey.API_VERSIONS: served}, node.image, node.metadata.kraft_version
        )
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
        return _frame(header._replace(api_version=0), response)


def _frame(header: RequestHeader, response: Message | None) -> Parts:
    """The bytes of an answer; none for a request that wants none."""
    if response is None:
        return ()
    try:
        body = encode(response, header.api_version)
    except EncodeError as error:
        log.error("an answer cannot be sent in version %d: %.1000r", header.api_version, response)
        raise CloseConnection(f"an answer cannot be encoded: {error}") from error
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    size = len(head)
    for part in body:
        size += len(part)
    if body and isinstance(body[0], bytes):
        return [_SIZE.pack(size) + head + body[0], *body[1:]]
    return [_SIZE.pack(size) + head, *body]


def failure(served: ServedApi, version: int, request: Message, error: Exception) -> Message:
    """The answer to a request that failed as a whole."""
    if not isinstance(error, KafkaError):
        log.error("%s failed: %.1000r", served.api.name, request, exc_info=error)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The server met an unexpected error.")
    shaped = failure_response(request, error)
    if shaped is not None:
        return shaped
    response: Any = served.api.response()
    if not any(field.name == "error_code" and field.versions.has(version) for field in response.FIELDS):
        # An answer that looks like success would be worse than none.
        raise CloseConnection(f"{served.api.name} failed with {error.code.name}: {error.message}")
    response.error_code = error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message
    failed: Message = response
    return failed
