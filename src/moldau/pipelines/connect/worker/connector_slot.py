"""A connector that is assigned to this worker: its instance runs here and plans the tasks.

A slot is an actor like that of a task: `want` sets configuration and target state, one coroutine brings them
about. The connector's own code runs in threads of its own, so that a slow one delays no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from moldau.base.errors import KafkaError
from moldau.http.errors import ApiError
from moldau.pipelines.connect.config.connector import parse_common
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.plugins import Plugins, java_name
from moldau.pipelines.connect.sdk import Connector, SinkConnector
from moldau.pipelines.connect.storage.status_state import State
from moldau.pipelines.connect.storage.types import Properties, TargetState
from moldau.pipelines.connect.worker.calls import call_in_thread
from moldau.pipelines.connect.worker.reports import Reports
from moldau.pipelines.connect.worker.retries import Backoff, may_pass
from moldau.pipelines.connect.worker.task.run import trace_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_RETRY_S: Final = 0.25
_STATES: Final = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}

#: Stores the configurations of a connector's tasks, if they have changed.
PutTasks = Callable[[str, Sequence[Properties]], Awaitable[None]]


class Wanted(NamedTuple):
    config: Properties
    target: TargetState


class _Context:
    """Implements `ConnectorContext`."""

    def __init__(self, slot: ConnectorSlot, loop: asyncio.AbstractEventLoop) -> None:
        self._slot = slot
        self._loop = loop

    def request_task_reconfiguration(self) -> None:
        self._loop.call_soon_threadsafe(self._slot.plan_tasks)

    def raise_error(self, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._slot.fail, error)


class ConnectorSlot:
    def __init__(
        self,
        name: str,
        plugins: Plugins,
        reports: Reports,
        resolve: Callable[[Properties], dict[str, str]],
        put_tasks: PutTasks,
    ) -> None:
        self.name = name
        self._plugins = plugins
        self._reports = reports
        self._resolve = resolve
        self._put_tasks = put_tasks
        self._wanted: Wanted | None = None
        self._exists = True
        self._connector: Connector | None = None
        self._current: Wanted | None = None
        self._failed = False
        self._abandoned = False
        self._restart = False
        self._plan = False
        self._retry_s = 0.0
        self._backoff = Backoff(_FIRST_RETRY_S)
        #: Why the connector waits, as the status shows it.
        self._reason: str | None = None
        self.version: str | None = None
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._actor = asyncio.create_task(self._act())

    def __str__(self) -> str:
        return f"Connector {self.name}"

    def want(self, wanted: Wanted | None, *, exists: bool = True) -> None:
        if wanted != self._wanted or wanted is None:
            self._wanted, self._exists = wanted, exists
            self._settled.clear()
            self._changed.set()

    def restart(self) -> None:
        self._restart = True
        self._settled.clear()
        self._changed.set()

    def plan_tasks(self) -> None:
        self._plan = True
        self._changed.set()

    def fail(self, error: Exception) -> None:
        self._failed = True
        logger.error("Connector %s failed: %s", self.name, self._reports.hide(trace_of(error)))
        self._reports.connector(self.name, State.FAILED, self.version, trace_of(error))

    async def settled(self) -> None:
        """Wait until the wanted state is reached, or the connector has failed."""
        await self._settled.wait()

    async def ended(self) -> None:
        await asyncio.wait([self._actor])

    async def abandon(self) -> None:
        """Give up waiting for a connector that does not stop: report its end, and nothing afterwards."""
        self._abandoned = True
        await self._unassign()

    async def _unassign(self) -> None:
        if self._exists and not self._failed:
            await self._reports.unassign_connector(self.name, self.version)

    async def _act(self) -> None:
        while True:
            self._changed.clear()
            wanted = self._wanted
            if wanted is None:
                await self._stop()
                if not self._abandoned:
                    await self._unassign()
                self._settled.set()
                return
            try:
                await self._follow(wanted)
                self._retry_s = 0.0
                self._backoff.reset()
            except _NotPlanned as error:
                self._plan = True
                self._retry_s = self._backoff.failed()
                logger.warning("The tasks of connector %s are not configured yet: %s", self.name, error)
            except Exception as error:  # noqa: BLE001 - whatever a connector raises is its status
                if self._wanted is None:
                    continue
                if may_pass(error):
                    self._try_again(error)
                else:
                    self._retry_s, self._current = 0.0, wanted
                    self.fail(error)
            if not self._changed.is_set():
                self._settled.set()
            await self._wait()

    def _try_again(self, error: Exception) -> None:
        """Start the instance, or plan its tasks, again later; the status shows why."""
        self._retry_s = self._backoff.failed()
        self._plan = True
        if self._connector is None:
            self._current = None
        reason = f"{type(error).__name__}: {error}"
        logger.warning(
            "Connector %s tries again in %.1f s: %s", self.name, self._retry_s, self._reports.hide(reason)
        )
        if reason != self._reason:
            self._reason = reason
            self._reports.connector(self.name, State.RUNNING, self.version, reason)

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), self._retry_s or None)
        except TimeoutError:
            return

    async def _follow(self, wanted: Wanted) -> None:
        """Start, pause, stop or restart the instance, and plan its tasks."""
        if wanted != self._current or self._restart:
            if self._restart:
                self._reports.connector(self.name, State.RESTARTING, self.version)
            same_config = self._current is not None and self._current.config == wanted.config
            if self._restart or self._failed or not same_config or wanted.target is not TargetState.STARTED:
                await self._stop()
            self._restart = self._failed = False
            if wanted.target is TargetState.STARTED and self._connector is None:
                await self._start(wanted.config)
            if self._wanted is None:
                # It was taken away meanwhile: the state is that of its next owner.
                return
            self._current = wanted
            self._reason = None
            self._reports.connector(self.name, _STATES[wanted.target], self._version_of(wanted.config))
            self._plan = wanted.target is TargetState.STARTED
        if self._plan and self._connector is not None and not self._failed:
            self._plan = False
            await self._plan_tasks(wanted.config)
            if self._reason is not None:
                self._reason = None
                self._reports.connector(self.name, State.RUNNING, self.version)

    def _version_of(self, config: Properties) -> str | None:
        if self.version is None:
            self.version = self._plugins.connector(config["connector.class"]).version
        return self.version

    async def _start(self, config: Properties) -> None:
        connector = self._plugins.connector(config["connector.class"])
        self.version = connector.version
        context = _Context(self, asyncio.get_running_loop())
        await self._call(connector.start, self._resolve(config), context)
        self._connector = connector

    async def _stop(self) -> None:
        connector, self._connector = self._connector, None
        if connector is not None:
            try:
                await self._call(connector.stop)
            except Exception as error:  # noqa: BLE001 - a connector that cannot stop is gone nevertheless
                reason = self._reports.hide(str(error))
                logger.warning("Connector %s failed to stop: %s", self.name, reason)

    async def _call(self, method: Callable[..., T], *arguments: object) -> T:
        return await call_in_thread(f"connector {self.name}", method, *arguments)

    async def _plan_tasks(self, config: Properties) -> None:
        connector = self._connector
        if connector is None:
            return
        common = parse_common(self._resolve(config))
        most = common["tasks.max"]
        configs = await self._call(connector.task_configs, most)
        if len(configs) > most and common["tasks.max.enforce"]:
            raise ConnectError(
                f"The connector {self.name} has generated {len(configs)} tasks, which is greater than "
                f"{most}, the maximum number of tasks it is configured to create. "
            )
        if self._wanted is None:
            return
        try:
            await self._put_tasks(self.name, [_task_config(connector, config, each) for each in configs])
        except (KafkaError, ApiError, OSError, TimeoutError) as error:
            raise _NotPlanned(str(error)) from error


class _NotPlanned(Exception):
    """The configurations of the tasks could not be stored; it is tried again."""


def _task_config(connector: Connector, config: Properties, own: Mapping[str, Any]) -> dict[str, str]:
    """Return a task's config with what Kafka Connect adds: the task's class, and the topics of a sink."""
    name = java_name(type(connector))
    result = {**own, "task.class": f"{name.removesuffix('Connector')}Task"}
    if isinstance(connector, SinkConnector):
        result |= {each: config[each] for each in ("topics", "topics.regex") if config.get(each)}
    return result
