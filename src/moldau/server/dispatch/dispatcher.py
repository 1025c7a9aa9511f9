"""From a frame to a response: header, API table, decode, handler, encode.

The dispatcher is the one place where a `KafkaError` that a handler raises becomes a response, and where an
unexpected exception is logged and answered with UNKNOWN_SERVER_ERROR; the connection and the node continue.
If quotas are set, `throttle` measures each request, sets `throttle_time_ms` and mutes the connection.
A frame that cannot be read (unknown API or version, undecodable bytes) closes its connection, as in Kafka:
there is no response that the client could decode. ApiVersions is the exception of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.controller.errors import failure_response
from moldau.network.connection import CloseConnection, Connection
from moldau.network.responses import Parts, Response
from moldau.protocol.headers import RequestHeader
from moldau.protocol.schema import Message
from moldau.security.principal import ANONYMOUS
from moldau.server.authentication.authentication import Authentication
from moldau.server.dispatch.context import (
    ListenerContext,
    Pending,
    RequestContext,
    ServedApi,
)
from moldau.server.dispatch.frames import decode_frame, encode_frame, not_served
from moldau.server.dispatch.request_log import REQUEST_LOG
from moldau.server.dispatch.throttle import UNLIMITED, RequestMeter, Throttle

if TYPE_CHECKING:
    from moldau.server.metrics.requests import RequestMetrics

logger = logging.getLogger(__name__)


class ApiDispatcher:
    """Serves the requests of one listener."""

    def __init__(
        self,
        listener: ListenerContext,
        authentication: Authentication,
        on_disconnect: Callable[[Connection], None],
        throttle: Throttle | None = None,
        requests: RequestMetrics | None = None,
    ) -> None:
        """`throttle` is None if no quotas apply to the listener, `requests` if they are not measured."""
        self._listener = listener
        self._apis = listener.apis
        self._handlers = listener.handlers
        self._authentication = authentication
        self._on_disconnect = on_disconnect
        self._throttle = throttle or UNLIMITED
        self._requests = requests
        self._log = REQUEST_LOG

    def dispatch(self, connection: Connection, frame: memoryview) -> Response:
        if connection.principal is None or connection.session_ends_at is not None:
            response = self._authentication.intercept(connection, frame)
            if response is not None:
                return response
        begin = monotonic() if self._requests is not None or self._log.enabled else 0.0
        meter = self._throttle.begin(connection, len(frame)) if self._throttle.quotas.active else None
        header, served, request = decode_frame(self._apis, frame)
        if served is None or request is None:
            return Response(not_served(served, header))
        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            self._listener,
            connection.principal or ANONYMOUS,
            connection.peer_host,
            connection,
            header.correlation_id,
        )
        if meter is not None and not meter.decoded(context, request):
            meter = None
        return self._run(served, header, context, request, meter, begin, len(frame))

    def disconnected(self, connection: Connection) -> None:
        self._authentication.disconnected(connection)
        self._on_disconnect(connection)

    def _run(
        self,
        served: ServedApi,
        header: RequestHeader,
        context: RequestContext,
        request: Message,
        meter: RequestMeter | None,
        begin: float,
        size: int,
    ) -> Response:
        try:
            result = self._handlers[header.api_key](context, request)
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001  a bug in one handler must not stop the node
            result = failure(served, header.api_version, request, error)
        if meter is not None:
            meter.handled()
        if result is None or isinstance(result, Message):
            if meter is not None:
                meter.answered(result)
            response = Response(encode_frame(header, result))
            if begin:
                if self._requests is not None:
                    self._requests.answered(header, request, result, begin, size)
                if self._log.enabled:
                    elapsed_ms = (monotonic() - begin) * 1000
                    self._log.completed(served.api.name, context, result, elapsed_ms, elapsed_ms)
            return response
        overlapping = False
        if isinstance(result, Pending):
            if result.keeps_frame:
                context.connection.keep_frame()
            overlapping, result = result.overlapping, result.response
        handled = monotonic() if begin else 0.0
        pending = self._later(served, header, context, request, result, meter, begin, handled, size)
        return Response(pending=pending, overlapping=overlapping)

    async def _later(
        self,
        served: ServedApi,
        header: RequestHeader,
        context: RequestContext,
        request: Message,
        result: Awaitable[Message | None],
        meter: RequestMeter | None,
        begin: float,
        handled: float,
        size: int,
    ) -> Parts:
        """Return the response of a handler that returned at `handled`; 0 if the request is not measured."""
        waiting = None
        if begin and self._requests is not None:
            waiting = self._requests.waiting(header, request, begin, handled, size)
        try:
            response = await (result if meter is None else meter.measured(result))
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001  as above
            response = failure(served, header.api_version, request, error)
        finally:
            if waiting is not None:
                waiting.end()
        if meter is not None:
            meter.answered(response)
        parts = encode_frame(header, response)
        if waiting is not None:
            waiting.answered(response)
        if begin and self._log.enabled:
            local_ms, total_ms = (handled - begin) * 1000, (monotonic() - begin) * 1000
            self._log.completed(served.api.name, context, response, local_ms, total_ms)
        return parts


def failure(served: ServedApi, version: int, request: Message, error: Exception) -> Message:
    """Return the response to a request that failed as a whole."""
    if not isinstance(error, KafkaError):
        logger.error(
            "%s failed: %.1000r",
            served.api.name,
            request,
            exc_info=error,
            extra=event("request.failed", api=served.api.name),
        )
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
