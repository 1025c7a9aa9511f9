"""The connectors and tasks that run on this worker: a slot for each that is assigned to it.

`reconcile` compares assignment and configurations with the slots, and tells each slot what is wanted. It is
called after every change and does nothing but set wanted states, so it may be called at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from moldau.config.providers import ConfigProviders
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.sdk import SourceConnector
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.storage.types import TargetState, TaskId
from moldau.pipelines.connect.worker import connector_slot, task_slot
from moldau.pipelines.connect.worker.assignment import Group
from moldau.pipelines.connect.worker.connector_slot import ConnectorSlot, PutTasks
from moldau.pipelines.connect.worker.group.fencing import transactional_id
from moldau.pipelines.connect.worker.hosting.host import TaskHost
from moldau.pipelines.connect.worker.reports import Reports
from moldau.pipelines.connect.worker.task.spec import TaskSpec
from moldau.pipelines.connect.worker.task_slot import TaskSlot

logger = logging.getLogger(__name__)

#: How long the host of a task takes to interrupt it, beside its time to stop.
_INTERRUPT_S: Final = 6.0


class Runtime:
    def __init__(
        self,
        settings: WorkerSettings,
        plugins: Plugins,
        providers: ConfigProviders,
        store: Store,
        group: Group,
        host: TaskHost,
        reports: Reports,
        put_tasks: PutTasks,
        fence: Callable[[str], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._providers = providers
        self._store = store
        self._group = group
        self._host = host
        self._reports = reports
        self._put_tasks = put_tasks
        self._fence = fence
        self.connectors: dict[str, ConnectorSlot] = {}
        self.tasks: dict[TaskId, TaskSlot] = {}
        #: Tasks that are not wanted any more and have not stopped yet.
        self._ending: set[TaskSlot] = set()

    def reconcile(self) -> None:
        """Tell every slot what is wanted now."""
        configs = self._store.configs
        for name in [each for each in self.connectors if not self._wants_connector(each)]:
            self.connectors.pop(name).want(None, exists=name in configs.connectors)
        for task in [each for each in self.tasks if not self._wants_task(each)]:
            self._end_task(task, exists=task in configs.task_configs)
        for name in filter(self._wants_connector, configs.connectors):
            wanted = connector_slot.Wanted(configs.connectors[name], configs.target_state(name))
            self._connector_slot(name).want(wanted)
        for task in filter(self._wants_task, configs.all_tasks()):
            paused = configs.target_state(task.connector) is not TargetState.STARTED
            generation = configs.generations.get(task.connector, 0)
            self._task_slot(task).want(task_slot.Wanted(generation, paused))

    async def close(self) -> None:
        """Stop everything that runs here; it remains configured."""
        slots: list[ConnectorSlot | TaskSlot] = [*self.tasks.values(), *self.connectors.values()]
        self.tasks, self.connectors = {}, {}
        await self._end(slots)

    async def revoke(self, connectors: list[str], tasks: list[TaskId]) -> None:
        """Stop connectors and tasks that another worker will run, and wait until they have stopped.

        One that hangs does not hold the rebalance of all workers: after a while it is abandoned.
        """
        slots: list[ConnectorSlot | TaskSlot] = []
        slots += [self.tasks.pop(each) for each in tasks if each in self.tasks]
        slots += [self.connectors.pop(each) for each in connectors if each in self.connectors]
        await self._end(slots)

    async def _end(self, slots: Sequence[ConnectorSlot | TaskSlot]) -> None:
        for slot in slots:
            slot.want(None)
        patience_s = self._settings.shutdown_timeout_s
        await asyncio.gather(
            *(_end(slot, patience_s + (_INTERRUPT_S if isinstance(slot, TaskSlot) else 0)) for slot in slots)
        )

    async def tasks_stopped(self, connector: str) -> None:
        """Wait until the tasks of a connector that are not wanted any more have stopped here."""
        ending = [each for each in self._ending if each.id.connector == connector]
        await asyncio.gather(*(each.ended() for each in ending))

    def _end_task(self, task: TaskId, *, exists: bool) -> None:
        slot = self.tasks.pop(task)
        slot.want(None, exists=exists)
        self._ending.add(slot)
        slot.when_ended(lambda: self._ending.discard(slot))

    def _wants_connector(self, name: str) -> bool:
        return name in self._store.configs.connectors and self._group.owns_connector(name)

    def _wants_task(self, task: TaskId) -> bool:
        configs = self._store.configs
        return (
            task.connector in configs.connectors
            and task in configs.task_configs
            and task.task < configs.task_counts.get(task.connector, 0)
            and self._group.owns_task(task)
        )

    def _connector_slot(self, name: str) -> ConnectorSlot:
        slot = self.connectors.get(name)
        if slot is None:
            slot = ConnectorSlot(name, self._plugins, self._reports, self._providers.resolve, self._put_tasks)
            self.connectors[name] = slot
        return slot

    def _task_slot(self, task: TaskId) -> TaskSlot:
        slot = self.tasks.get(task)
        if slot is None:
            slot = TaskSlot(
                task,
                self._host,
                self._reports,
                self._spec,
                self._prepare,
                self._version(task.connector),
                self._settings.shutdown_timeout_s,
            )
            self.tasks[task] = slot
        return slot

    async def _prepare(self, task: TaskId) -> None:
        """Fence earlier producers before a source task with exactly-once support starts."""
        connector = self._store.configs.connectors.get(task.connector)
        if connector is not None and self._transactional_id(task, connector) is not None:
            await self._fence(task.connector)

    def _version(self, connector: str) -> str | None:
        try:
            return self._plugins.connector(
                self._store.configs.connectors[connector]["connector.class"]
            ).version
        except (ConnectError, KeyError):
            return None

    def _spec(self, task: TaskId, paused: bool) -> TaskSpec:
        """Return what a task needs, with secrets resolved; `ConnectError` if they cannot be."""
        configs = self._store.configs
        connector = self._providers.resolve(configs.connectors[task.connector])
        is_source = not self._plugins.is_sink(connector["connector.class"])
        self._settings.overrides.check(connector, is_source=is_source)
        task_config = self._providers.resolve(configs.task_configs[task])
        worker, offsets = self._settings.properties, self._settings.offset_topic
        return TaskSpec(
            connector=task.connector,
            task=task.task,
            connector_config=connector,
            task_config=task_config,
            worker_config=worker,
            offsets_topic=None if offsets is None else offsets.name,
            transactional_id=self._transactional_id(task, connector),
            paused=paused,
            secrets=[
                secret
                for config in (connector, task_config, worker)
                for secret in self._providers.secrets_in(config)
            ],
        )

    def _transactional_id(self, task: TaskId, connector: Mapping[str, str]) -> str | None:
        group = self._settings.group
        if not self._settings.exactly_once or group is None:
            return None
        plugin = self._plugins.connector(connector["connector.class"])
        return transactional_id(group.group_id, task) if isinstance(plugin, SourceConnector) else None


async def _end(slot: ConnectorSlot | TaskSlot, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(slot.ended(), timeout_s)
    except TimeoutError:
        logger.warning("%s does not stop, and is abandoned", slot)
        await slot.abandon()
