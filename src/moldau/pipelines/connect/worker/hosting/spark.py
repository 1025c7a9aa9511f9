"""Tasks as long-lived Spark tasks: a Spark job of one task each, which loops until a stop command.

One Spark application (`spark.master`) hosts all tasks of the worker. A waiting task holds a slot, so a local
master has many (`local[256]`: threads of the JVM, which cost little). Speculation is off and a task has one
attempt, because restarts are the worker's: it knows the offsets.

The session starts in the background; tasks that are started before wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from moldau.base.json_log import hide_in_logs
from moldau.pipelines.connect.worker.calls import call_in_thread
from moldau.pipelines.connect.worker.hosting.channel import ChannelLink, ChannelServer, Remote
from moldau.pipelines.connect.worker.hosting.host import HostedTask, Offsets, OnEvent, described
from moldau.pipelines.connect.worker.task.spec import TaskSpec

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

_SETTINGS: Final = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.scheduler.mode": "FAIR",
    # A worker process is bound to its task for its whole life; idle ones are not needed.
    "spark.python.worker.reuse": "false",
    "spark.ui.enabled": "false",
}
_LOOPBACK: Final = "127.0.0.1"
_INTERRUPT_S: Final = 5.0


class SparkHost:
    def __init__(self, master: str, jars: Sequence[str] = ()) -> None:
        """`jars` are drivers for formats of Spark such as `jdbc`."""
        self._config = {**_SETTINGS, **({"spark.jars": ",".join(jars)} if jars else {})}
        self._master = master
        self._channel: ChannelServer | None = None
        self._context: asyncio.Future[SparkContext] | None = None
        self._failure: asyncio.Future[str] | None = None
        self._closing = False

    async def start(self, offsets: Offsets) -> None:
        loop = asyncio.get_running_loop()
        host = _LOOPBACK if self._master.startswith("local") else socket.gethostname()
        self._channel = ChannelServer(offsets, host)
        await self._channel.start()
        self._failure = loop.create_future()
        self._context = loop.create_future()
        threading.Thread(target=self._start_session, args=(loop,), name="spark", daemon=True).start()

    def run(self, spec: TaskSpec, on_event: OnEvent) -> HostedTask:
        if self._channel is None or self._context is None:
            raise RuntimeError("The host is not started.")
        return _Job(spec, on_event, self._channel, self._context, self._check)

    async def _check(self, context: SparkContext) -> None:
        """Report the end of Spark itself after a job has ended: then no task can run any more."""
        if not await asyncio.to_thread(_has_stopped, context) or self._closing:
            return
        if self._failure is not None and not self._failure.done():
            self._failure.set_result("Spark has ended; the worker stops, and its group moves its tasks.")

    async def close(self) -> None:
        self._closing = True
        if self._channel is not None:
            await self._channel.close()
        if self._context is not None and self._context.done() and not self._context.exception():
            await asyncio.to_thread(self._context.result().stop)

    async def failed(self) -> str:
        while self._failure is None:
            await asyncio.sleep(0.1)
        return await asyncio.shield(self._failure)

    def _start_session(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            from moldau.pipelines.spark.session import session

            spark = session("moldau-connect", master=self._master, quick_start=True, config=self._config)
        except Exception as error:  # noqa: BLE001 - Java may be missing, the master unreachable, …
            message = f"Spark cannot be started: {error}"
            loop.call_soon_threadsafe(self._started, None, message)
        else:
            loop.call_soon_threadsafe(self._started, spark.sparkContext, "")

    def _started(self, context: SparkContext | None, reason: str) -> None:
        if self._context is None or self._failure is None or self._context.done():
            return
        if context is None:
            self._context.cancel()
            self._failure.set_result(reason)
        else:
            self._context.set_result(context)


class _Job:
    """A Spark job with one task."""

    def __init__(
        self,
        spec: TaskSpec,
        on_event: OnEvent,
        channel: ChannelServer,
        context: asyncio.Future[SparkContext],
        check: Callable[[SparkContext], Awaitable[None]],
    ) -> None:
        self._remote = Remote(spec, on_event)
        self._channel = channel
        self._context = context
        self._check = check
        self._group = f"connect-{spec.id}-{self._remote.ticket[:8]}"
        channel.expect(self._remote)
        self._running = asyncio.ensure_future(self._run())

    def pause(self, paused: bool) -> None:
        self._remote.pause(paused)

    async def stop(self, timeout_s: float) -> bool:
        self._remote.stop()
        if not self._context.done():
            # The task has not been submitted yet.
            self._running.cancel()
            self._channel.forget(self._remote)
            return True
        done, _ = await asyncio.wait([self._running], timeout=timeout_s)
        if done:
            return True
        self._remote.cancel()
        await asyncio.to_thread(self._context.result().cancelJobGroup, self._group)
        await asyncio.wait([self._running], timeout=_INTERRUPT_S)
        return False

    async def _run(self) -> None:
        context = await asyncio.shield(self._context)
        try:
            await call_in_thread(self._group, self._submit, context)
            reason = "The Spark task has ended."
        except Exception as error:  # noqa: BLE001 - Spark reports a lost process in many ways
            reason = f"The Spark task has ended: {str(error).splitlines()[0] if str(error) else error!r}"
        self._channel.forget(self._remote)
        await self._check(context)
        self._remote.lost(reason)

    def _submit(self, context: Any) -> None:
        """Run the job, in a thread of its own, until the task ends."""
        context.setJobGroup(self._group, described(self._remote.spec.id), interruptOnCancel=True)
        address, ticket = self._channel.address, self._remote.ticket
        context.parallelize([(address, ticket)], 1).foreachPartition(run_in_executor)


def _has_stopped(context: Any) -> bool:
    """Return whether the driver's JVM has stopped, or does not answer because it has ended."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return True


def run_in_executor(partition: Iterator[tuple[tuple[str, int], str]]) -> None:
    """Run a task in a Python process of Spark."""
    from moldau.pipelines.connect.plugins import Plugins
    from moldau.pipelines.connect.worker.task.control import Control
    from moldau.pipelines.connect.worker.task.run import run_task

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for address, ticket in partition:
        link = ChannelLink(address, ticket)
        hide_in_logs(link.spec.hide)
        control = Control(link, paused=link.spec.paused)
        link.follow(control)
        with contextlib.closing(link):
            run_task(link.spec, control, Plugins(worker=link.spec.worker_config))
