"""TLS handshakes of the clients of a node: how many, how long at a time, and what is logged of failures.

A handshake costs about a millisecond of CPU, most of it in one step. The steps are queued and run in slices
of a few milliseconds, so that a flood of new connections delays requests of other clients only a little. The
number of handshakes in progress is bounded: over the bound the oldest is closed, because an honest client
completes a handshake in a few round trips. A connection that has not sent anything is not in progress.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from moldau.base.json_log import event
from moldau.base.log_throttle import Repeats

logger = logging.getLogger(__name__)

MAX_IN_PROGRESS = 500
_SLICE_SECONDS = 0.004
_LOG_INTERVAL_SECONDS = 1.0
#: OpenSSL has a fixed number of reasons; no more than this are remembered.
_MAX_REASONS = 64


class Handshake(Protocol):
    def give_up(self, reason: str) -> None:
        """Close the connection."""
        ...


class Handshakes:
    """Shared by all TLS listeners of a node."""

    def __init__(self, max_in_progress: int = MAX_IN_PROGRESS) -> None:
        self._max = max_in_progress
        #: In the order in which they began.
        self._in_progress: dict[Handshake, None] = {}
        self._steps: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self._repeats = Repeats(interval_s=_LOG_INTERVAL_SECONDS, most=_MAX_REASONS)

    @property
    def in_progress(self) -> int:
        return len(self._in_progress)

    def begin(self, handshake: Handshake) -> None:
        if len(self._in_progress) >= self._max:
            next(iter(self._in_progress)).give_up(f"more than {self._max} handshakes in progress")
        self._in_progress[handshake] = None

    def end(self, handshake: Handshake) -> None:
        self._in_progress.pop(handshake, None)

    def run(self, step: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        """Run a step of a handshake soon."""
        self._steps.append(step)
        self._schedule(loop)

    def log_failure(self, peer: str, reason: str) -> None:
        """Log a failed handshake, each reason at most once a second."""
        not_logged = self._repeats.left_out(reason)
        if not_logged is None:
            return
        more = f" ({not_logged} more for this reason since the last such line)" if not_logged else ""
        logger.info(
            "TLS handshake with %s failed: %s%s",
            peer,
            reason,
            more,
            extra=event("tls_handshake.failed", client=peer),
        )

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._steps and not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._run_slice, loop)

    def _run_slice(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        end = time.monotonic() + _SLICE_SECONDS
        try:
            while self._steps and time.monotonic() < end:
                self._steps.popleft()()
        finally:
            self._schedule(loop)
