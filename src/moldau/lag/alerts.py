"""Alerts: a POST to a webhook for every change of a group's status.

Alerts are sent one after the other, in the order of the changes. A failed one is repeated with exponential
back-off; a client error other than 408 and 429 is final. At most `most_waiting` alerts wait; then the oldest
is dropped, because the newest status matters most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final

from moldau.base.backoff import Backoff
from moldau.base.json_log import event
from moldau.lag.documents import partition_document
from moldau.lag.evaluation.rules import Status
from moldau.lag.monitor import StatusChange

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 1000
_MAX_ATTEMPTS: Final = 10
_BACKOFF: Final = Backoff(0.5, 60.0)
_TIMEOUT_S: Final = 10.0
#: Time for waiting alerts when the monitor is closed.
_CLOSE_S: Final = 5.0
_RETRIABLE: Final = frozenset({408, 429})


class Webhook:
    """Sends alerts to one URL. `cluster` is the name of the cluster in them, instead of its id."""

    def __init__(
        self,
        url: str,
        cluster: str | None = None,
        *,
        backoff: Backoff = _BACKOFF,
        most_waiting: int = _MAX_WAITING,
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._url = url
        self._cluster = cluster
        self._backoff = backoff
        self._most_waiting = most_waiting
        self._waiting: deque[dict[str, Any]] = deque()
        self._task: asyncio.Task[None] | None = None

    def __call__(self, change: StatusChange) -> None:
        """Queue an alert; it is sent in the background."""
        if len(self._waiting) == self._most_waiting:
            self._waiting.popleft()
            self.dropped += 1
            logger.warning(
                "Too many alerts wait for %s; the oldest is dropped.", self._url, extra=event("alert.dropped")
            )
        self._waiting.append(alert_document(change, self._cluster or change.cluster_id))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all())

    async def close(self) -> None:
        """Wait a few seconds for alerts that are still to be sent."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_CLOSE_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        import httpx2

        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            while self._waiting:
                alert = self._waiting.popleft()
                if await self._send(client, alert):
                    self.sent += 1
                else:
                    self.dropped += 1

    async def _send(self, client: Any, alert: dict[str, Any]) -> bool:
        """Send one alert until it is accepted; return False if it is refused or all attempts failed."""
        import httpx2

        reason: object = None
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            try:
                answer = await client.post(self._url, json=alert)
            except httpx2.TransportError as error:
                reason = str(error) or type(error).__name__
            else:
                if answer.is_success:
                    return True
                reason = f"HTTP {answer.status_code}"
                if answer.is_client_error and answer.status_code not in _RETRIABLE:
                    break
            logger.info(
                "The webhook %s failed (%s); attempt %d",
                self._url,
                reason,
                attempt,
                extra=event("alert.repeated", group=alert["group"], attempt=attempt),
            )
            await asyncio.sleep(self._backoff.seconds(attempt))
        logger.warning(
            "An alert for %s was not accepted by %s: %s",
            alert["group"],
            self._url,
            reason,
            extra=event("alert.dropped", group=alert["group"]),
        )
        return False


def alert_document(change: StatusChange, cluster: str | None) -> dict[str, Any]:
    """The body of an alert; `text` is a sentence for chat services."""
    lag = change.lag
    sentence = f" {lag.reason}" if lag.reason and change.after is not Status.NOTFOUND else ""
    return {
        "event": "lag.status.changed",
        "time": change.time_ms,
        "cluster": cluster,
        "group": lag.group,
        "previous_status": change.before.name,
        "status": change.after.name,
        "lag": lag.total_lag,
        "lag_seconds": lag.lag_seconds,
        "reason": lag.reason,
        "text": f"Group {lag.group}: {change.before.name} -> {change.after.name}.{sentence}",
        "partitions": [partition_document(each) for each in lag.partitions if each.status is not Status.OK],
    }
