"""Timers of a shard: each runs a decision when its time has come, unless it was put off or cancelled.

Heartbeats put a timer off far more often than one runs out, so that costs only a new deadline: the loop's
timer stays where it is, and when it comes too early it is set again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)

Decide = Callable[[], Decision[Entry, Any]]
#: A decision that could not be written is tried again after this long.
_RETRY_SECONDS = 0.5


class _Timer:
    __slots__ = ("deadline", "decide", "handle")

    def __init__(self, deadline: float, decide: Decide, handle: asyncio.TimerHandle) -> None:
        self.deadline = deadline
        self.decide = decide
        self.handle = handle


class LoopTimers:
    """`take` is given the decision of a timer that has run out."""

    def __init__(self, take: Callable[[Decide], object]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, _Timer] = {}

    def schedule(self, key: str, delay_ms: int, decide: Decide) -> None:
        """Run `decide` after `delay_ms`, instead of what was scheduled under that key before."""
        deadline = self._loop.time() + delay_ms / 1000
        timer = self._timers.get(key)
        if timer is not None and timer.deadline <= deadline:
            timer.deadline, timer.decide = deadline, decide
            return
        if timer is not None:
            timer.handle.cancel()
        self._timers[key] = _Timer(deadline, decide, self._loop.call_at(deadline, self._due, key))

    def cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def is_scheduled(self, key: str) -> bool:
        return key in self._timers

    def close(self) -> None:
        for key in list(self._timers):
            self.cancel(key)

    def _due(self, key: str) -> None:
        timer = self._timers[key]
        if self._loop.time() < timer.deadline:
            timer.handle = self._loop.call_at(timer.deadline, self._due, key)
            return
        del self._timers[key]
        try:
            self._take(timer.decide)
        except KafkaError as error:
            log.info("a coordinator's timer is tried again: %s", error)
            self._again(key, timer.decide)
        except Exception:
            log.exception("a coordinator's timer failed and is tried again")
            self._again(key, timer.decide)

    def _again(self, key: str, decide: Decide) -> None:
        if key not in self._timers:
            self.schedule(key, int(_RETRY_SECONDS * 1000), decide)
