"""The request log and the log of slow requests, switched at run time as broker loggers (KIP-412).

- `kafka.request.logger` at DEBUG: every request with its client, its times and its error, as in Kafka.
- `moldau.slow.requests` at INFO: requests that occupied the event loop longer than `SLOW_LOCAL_MS`, or took
  longer than `SLOW_TOTAL_MS`. Requests that wait for records or members on purpose count by their local time.

Both are off by default. While they are off, a request costs one check.
"""

from __future__ import annotations

import logging
from typing import Final

from moldau.base.errors import ErrorCode
from moldau.base.printable import one_line
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

REQUEST_LOGGER: Final = "kafka.request.logger"
SLOW_LOGGER: Final = "moldau.slow.requests"
SLOW_LOCAL_MS: Final = 50.0
SLOW_TOTAL_MS: Final = 1000.0
#: Requests that wait as long as the client wants.
_WAITING: Final = frozenset(
    {ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FETCH_SNAPSHOT}
)
_requests = logging.getLogger(REQUEST_LOGGER)
_slow = logging.getLogger(SLOW_LOGGER)


class RequestLog:
    """`enabled` is whether one of the loggers is on; `refresh` follows changed levels."""

    def __init__(self) -> None:
        self.enabled = False

    def refresh(self) -> None:
        self.enabled = _requests.isEnabledFor(logging.DEBUG) or _slow.isEnabledFor(logging.INFO)

    def completed(
        self, api: str, context: RequestContext, response: Message | None, local_ms: float, total_ms: float
    ) -> None:
        """Log a request, if its logger is on."""
        if _requests.isEnabledFor(logging.DEBUG):
            _log(_requests, logging.DEBUG, "request", api, context, response, local_ms, total_ms)
        waits = context.api_key in _WAITING
        if local_ms > SLOW_LOCAL_MS or (total_ms > SLOW_TOTAL_MS and not waits):
            _log(_slow, logging.INFO, "slow-request", api, context, response, local_ms, total_ms)


#: Log levels belong to the process, and so does this.
REQUEST_LOG: Final = RequestLog()


def _log(
    logger: logging.Logger,
    level: int,
    event: str,
    api: str,
    context: RequestContext,
    response: Message | None,
    local_ms: float,
    total_ms: float,
) -> None:
    error = ErrorCode.of(getattr(response, "error_code", 0)).name
    connection = context.connection
    fields = {
        "api": api,
        "version": context.api_version,
        "correlation_id": context.correlation_id,
        "client_id": one_line(context.client_id or ""),
        "principal": str(context.principal),
        "client": f"{context.client_host}:{connection.peer_port}",
        "listener": context.listener.name,
        "software": " ".join(connection.client_software),
        "total_ms": round(total_ms, 3),
        "local_ms": round(local_ms, 3),
        "error": error,
    }
    text = " ".join(f"{name}={value}" for name, value in fields.items())
    logger.log(level, "%s %s", event, text, extra={"event": event, "fields": fields})


def default_levels() -> None:
    """Switch both loggers off, whatever the root logger's level is."""
    for name in (REQUEST_LOGGER, SLOW_LOGGER):
        logging.getLogger(name).setLevel(logging.WARNING)


default_levels()
