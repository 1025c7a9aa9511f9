"""The timers of a shard: each runs a decision at its deadline, unless it is rescheduled or cancelled first.

Heartbeats reschedule a timer far more often than one expires, so rescheduling only stores the new deadline:
the event loop's timer stays, and when it fires early it is set again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)

Decide = Callable[[], Decision[Entry, Any]]
#: The delay before a refused decision is retried.
_RETRY_SECONDS = 0.5


class _Timer:
    __slots__ = ("deadline", "decide", "handle")

    def __init__(self, deadline: float, decide: Decide, handle: asyncio.TimerHandle) -> None:
        self.deadline = deadline
        self.decide = decide
        self.handle = handle


class LoopTimers:
    """Expired timers pass their decision to `take`."""

    def __init__(self, take: Callable[[Decide], object]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, _Timer] = {}

    def schedule(self, key: str, delay_ms: int, decide: Decide) -> None:
        """Run `decide` after `delay_ms`, replacing the decision scheduled under `key` before."""
        deadline = self._loop.time() + delay_ms / 1000
        timer = self._timers.get(key)
        if timer is not None and timer.deadline <= deadline:
            timer.deadline, timer.decide = deadline, decide
            return
        if timer is not None:
            timer.handle.cancel()
        self._timers[key] = _Timer(deadline, decide, self._loop.call_at(deadline, self._expired, key))

    def cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def is_scheduled(self, key: str) -> bool:
        return key in self._timers

    def close(self) -> None:
        for key in list(self._timers):
            self.cancel(key)

    def _expired(self, key: str) -> None:
        timer = self._timers[key]
        if self._loop.time() < timer.deadline:
            timer.handle = self._loop.call_at(timer.deadline, self._expired, key)
            return
        del self._timers[key]
        try:
            self._take(timer.decide)
        except KafkaError as error:
            logger.info("the decision of timer %s was refused and is retried: %s", key, error)
            self._retry(key, timer.decide)
        except Exception:
            logger.exception("the decision of timer %s failed and is retried", key)
            self._retry(key, timer.decide)

    def _retry(self, key: str, decide: Decide) -> None:
        if key not in self._timers:
            self.schedule(key, int(_RETRY_SECONDS * 1000), decide)
