"""A task that is assigned to this worker: started, paused, restarted and stopped as its wanted state says.

A slot is an actor: `want` sets what should be, one coroutine brings it about, whatever happens meanwhile. A
task that has failed stays failed until it is restarted or configured again, as in Kafka Connect. A task whose
process ended without a report (killed, out of memory, a lost executor) is restarted with a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from moldau.base.errors import KafkaError
from moldau.http.errors import ApiError
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.storage.status_state import State
from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.hosting.host import HostedTask, TaskHost
from moldau.pipelines.connect.worker.reports import Reports
from moldau.pipelines.connect.worker.task.control import Event
from moldau.pipelines.connect.worker.task.meter import counts_of
from moldau.pipelines.connect.worker.task.run import trace_of
from moldau.pipelines.connect.worker.task.spec import TaskSpec

logger = logging.getLogger(__name__)

_FIRST_DELAY_S: Final = 0.5
_MAX_DELAY_S: Final = 60.0
_PREPARE_AGAIN_S: Final = 0.5
#: A task that ran this long has recovered from earlier losses.
_RECOVERED_S: Final = 60.0


class Wanted(NamedTuple):
    """What should run: the generation of the task's config, and whether it is paused."""

    generation: int
    paused: bool


class TaskSlot:
    def __init__(
        self,
        task: TaskId,
        host: TaskHost,
        reports: Reports,
        spec_of: Callable[[TaskId, bool], TaskSpec],
        prepare: Callable[[TaskId], Awaitable[None]],
        version: str | None,
        shutdown_timeout_s: float,
    ) -> None:
        self.id = task
        self._host = host
        self._reports = reports
        self._spec_of = spec_of
        self._prepare = prepare
        self._version = version
        self._shutdown_timeout_s = shutdown_timeout_s
        self._wanted: Wanted | None = None
        #: Whether the task still exists when it is not wanted here, so that its status is UNASSIGNED.
        self._exists = True
        self._running: HostedTask | None = None
        #: How many tasks the slot has started; reports of earlier ones, which may still run, are ignored.
        self._incarnation = 0
        #: What the running, or the failed, task was started for.
        self._current: Wanted | None = None
        self._failed = False
        self._abandoned = False
        #: The counts of records of the running task.
        self.counts: dict[str, int] = {}
        self._restart = False
        self._losses = 0
        self._started_at = 0.0
        self._retry_at = 0.0
        self._changed = asyncio.Event()
        self._actor = asyncio.create_task(self._act())

    @property
    def failed(self) -> bool:
        return self._failed

    def __str__(self) -> str:
        return f"Task {self.id}"

    def want(self, wanted: Wanted | None, *, exists: bool = True) -> None:
        """Set what should be; None: nothing, and the slot ends."""
        if wanted != self._wanted or wanted is None:
            self._wanted, self._exists = wanted, exists
            self._changed.set()

    def restart(self) -> None:
        self._restart = True
        self._changed.set()

    async def ended(self) -> None:
        """Wait until the task has stopped, after `want(None)`."""
        await asyncio.wait([self._actor])

    async def abandon(self) -> None:
        """Give up waiting for a task that does not stop: report its end, and nothing afterwards."""
        self._abandoned = True
        await self._unassign()

    async def _unassign(self) -> None:
        if self._exists and not self._failed:
            await self._reports.unassign_task(self.id, self._version)

    def when_ended(self, callback: Callable[[], None]) -> None:
        self._actor.add_done_callback(lambda _: callback())

    async def _act(self) -> None:
        while True:
            self._changed.clear()
            if self._running is not None and self._is_stale():
                await self._stop()
            if self._wanted is None:
                if not self._abandoned:
                    await self._unassign()
                return
            if self._failed and (self._restart or self._is_stale()):
                self._failed = False
            if self._running is None and not self._failed:
                await self._start_when_due(self._wanted)
            self._restart = False
            self._follow_pause()
            await self._wait()

    def _is_stale(self) -> bool:
        wanted, current = self._wanted, self._current
        if self._restart or wanted is None or current is None:
            return True
        return wanted.generation != current.generation

    async def _wait(self) -> None:
        now = asyncio.get_running_loop().time()
        due = self._retry_at - now if self._running is None and not self._failed else None
        try:
            await asyncio.wait_for(self._changed.wait(), None if due is None else max(due, 0.01))
        except TimeoutError:
            return

    async def _start_when_due(self, wanted: Wanted) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._retry_at and not self._restart:
            return
        self._current, self._started_at = wanted, now
        if self._restart:
            self._reports.task(self.id, State.RESTARTING, self._version)
        try:
            await self._prepare(self.id)
        except (ApiError, KafkaError, OSError) as error:
            logger.warning("Task %s cannot start yet: %s", self.id, error)
            self._retry_at = now + _PREPARE_AGAIN_S
            return
        if self._wanted is None:
            return
        self._incarnation += 1
        try:
            spec = self._spec_of(self.id, wanted.paused)
            self._running = self._host.run(spec, partial(self._on_event, self._incarnation))
        except (ConnectError, KafkaError) as error:
            self._fail(trace_of(error))

    def _follow_pause(self) -> None:
        wanted, current = self._wanted, self._current
        if self._running is None or wanted is None or current is None or wanted.paused == current.paused:
            return
        self._current = current._replace(paused=wanted.paused)
        self._running.pause(wanted.paused)

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None and not await running.stop(self._shutdown_timeout_s):
            logger.warning("Task %s did not stop in time and was interrupted", self.id)

    def _on_event(self, incarnation: int, event: Event | None, detail: str | None) -> None:
        if incarnation != self._incarnation:
            # A task that did not stop in time and was replaced.
            return
        if event is Event.TOPIC and detail is not None:
            self._reports.topic(detail, self.id)
        elif event is Event.METRICS and detail is not None:
            self.counts = counts_of(detail)
        elif self._running is None:
            # It is being stopped.
            return
        elif event is Event.RUNNING:
            self._reports.task(self.id, State.RUNNING, self._version)
        elif event is Event.PAUSED:
            self._reports.task(self.id, State.PAUSED, self._version)
        elif event is Event.RETRYING:
            state = State.PAUSED if self._current is not None and self._current.paused else State.RUNNING
            self._reports.task(self.id, state, self._version, detail)
        elif event is Event.FAILED:
            self._fail(detail)
        else:
            self._lost(detail)

    def _fail(self, trace: str | None) -> None:
        self._running, self._failed = None, True
        logger.error("Task %s failed: %s", self.id, self._reports.hide(trace or "without a reason"))
        self._reports.task(self.id, State.FAILED, self._version, trace)
        self._changed.set()

    def _lost(self, reason: str | None) -> None:
        """Restart a task that ended without being told to and without an error of its own."""
        now = asyncio.get_running_loop().time()
        self._losses = 1 if now - self._started_at > _RECOVERED_S else self._losses + 1
        delay = min(_FIRST_DELAY_S * 2 ** (self._losses - 1), _MAX_DELAY_S)
        logger.warning("Task %s restarts in %.1f s: %s", self.id, delay, reason)
        self._running, self._retry_at = None, now + delay
        self._reports.task(self.id, State.RESTARTING, self._version)
        self._changed.set()
