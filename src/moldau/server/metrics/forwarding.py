"""Forwards the metrics that clients push to an OTLP endpoint (`metrics.otlp.endpoint`), over HTTP.

A payload is sent as it arrived, decompressed, with the client's name as attributes of its resources. Payloads
are sent one at a time in the pool; while the endpoint is slow or down, the newest are dropped and counted:
a broker does not keep metrics for others.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping
from typing import Final

from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.base.pool import Pool
from moldau.metrics.telemetry.otlp import with_resource_attributes
from moldau.server.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 100
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_TIMEOUT_S: Final = 5.0


class OtlpForwarder:
    def __init__(self, endpoint: str, pool: Pool, tasks: BackgroundTasks) -> None:
        self.forwarded = 0
        #: Payloads that could not be sent, or found no room.
        self.lost = 0
        self._endpoint = endpoint
        self._pool = pool
        self._tasks = tasks
        self._waiting: deque[tuple[bytes, Mapping[str, str]]] = deque()
        self._waiting_bytes = 0
        self._sending = False
        self._log_throttle = LogThrottle()

    def forward(self, payload: bytes, attributes: Mapping[str, str]) -> None:
        """Send a payload soon; drop it if too much waits."""
        if len(self._waiting) >= _MAX_WAITING or self._waiting_bytes + len(payload) > _MAX_WAITING_BYTES:
            self.lost += 1
            return
        self._waiting.append((payload, attributes))
        self._waiting_bytes += len(payload)
        if not self._sending:
            self._sending = True
            self._tasks.start(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                payload, attributes = self._waiting.popleft()
                self._waiting_bytes -= len(payload)
                problem = await self._pool.run(_post, self._endpoint, payload, attributes)
                if problem is None:
                    self.forwarded += 1
                    self._log_throttle.reset()
                    continue
                self.lost += 1
                if self._log_throttle.is_due(asyncio.get_running_loop().time(), problem):
                    logger.warning(
                        "metrics of clients cannot be sent to %s: %s",
                        self._endpoint,
                        problem,
                        extra=event("telemetry.not_forwarded"),
                    )
        finally:
            self._sending = False


def _post(endpoint: str, payload: bytes, attributes: Mapping[str, str]) -> str | None:
    """Send one payload; return why it was not accepted. Blocking."""
    request = urllib.request.Request(
        endpoint,
        data=with_resource_attributes(payload, attributes),
        headers={"Content-Type": "application/x-protobuf"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return None
