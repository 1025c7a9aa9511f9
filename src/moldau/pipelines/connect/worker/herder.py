"""The herder: what users ask for, decided by the leader and written as records.

A request is validated, written to the config log and thereby replayed; `Runtime.reconcile` does the rest on
every worker. Errors are `ApiError` with the status codes and messages of Kafka Connect; `NotLeader` and
`NotOwner` name the worker that a request has to be forwarded to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from moldau.client.wire.settings import ClientSettings
from moldau.config.providers import ConfigProviders
from moldau.http.errors import ApiError
from moldau.pipelines.connect.config.providers import with_variables
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.storage import config_records as records
from moldau.pipelines.connect.storage.config_state import Event, LoggerLevel, RestartRequest
from moldau.pipelines.connect.storage.status_state import State, Status, topic_removal
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.storage.types import Properties, TargetState, TaskId
from moldau.pipelines.connect.worker.assignment import Group
from moldau.pipelines.connect.worker.calls import call_in_thread
from moldau.pipelines.connect.worker.cleanup import Cleanup
from moldau.pipelines.connect.worker.group.fencing import Fencing
from moldau.pipelines.connect.worker.hosting.host import TaskHost
from moldau.pipelines.connect.worker.loggers import Loggers
from moldau.pipelines.connect.worker.metrics import WorkerMetrics
from moldau.pipelines.connect.worker.reports import Reports
from moldau.pipelines.connect.worker.runtime import Runtime
from moldau.pipelines.connect.worker.task.clients import group_id, shared_properties
from moldau.pipelines.connect.worker.validation import Validation, errors_of, hide_secrets

logger = logging.getLogger(__name__)

_SETTLE_S: Final = 30.0
#: Validations at the same time; some wait for targets that do not answer.
_MAX_VALIDATIONS: Final = 64


class NotLeader(Exception):
    """Another worker decides; `url` is None while it is unknown."""

    def __init__(self, url: str | None) -> None:
        super().__init__("This worker is not the leader of the group.")
        self.url = url


class Created(NamedTuple):
    created: bool
    info: dict[str, Any]


def not_found(message: str) -> ApiError:
    return ApiError(404, 404, message)


def bad_request(message: str) -> ApiError:
    return ApiError(400, 400, message)


class Workers(Protocol):
    """What the herder needs of the other workers of its group."""

    @property
    def fencing(self) -> Fencing: ...

    async def put_tasks(self, url: str | None, connector: str, configs: Sequence[Properties]) -> None: ...

    async def fence(self, url: str | None, connector: str) -> None: ...


class Herder:
    def __init__(
        self,
        settings: WorkerSettings,
        plugins: Plugins,
        providers: ConfigProviders,
        store: Store,
        group: Group,
        host: TaskHost,
        reports: Reports,
        workers: Workers | None = None,
    ) -> None:
        self.settings = settings
        self.plugins = plugins
        self.providers = providers
        self.store = store
        self.group = group
        self.loggers = Loggers()
        self.validation = Validation(plugins, settings)
        self._creating = asyncio.Lock()
        self._validating = asyncio.Semaphore(_MAX_VALIDATIONS)
        self._workers = workers
        self._cleanup = Cleanup(store, reports.worker_id, lambda: group.leads)
        self.runtime = Runtime(
            settings, plugins, providers, store, group, host, reports, self.put_task_configs, self.fence
        )

        client = ClientSettings.from_properties(shared_properties(settings.properties))
        self.metrics = WorkerMetrics(client, self.runtime, store, plugins)

    def start(self) -> None:
        self._cleanup.start()

    async def close(self) -> None:
        """Stop everything that runs here."""
        await self.metrics.close()
        await self.runtime.close()
        await self._cleanup.close()

    # Changes of the state.

    def changed(self, event: Event = None) -> None:
        """React to a record of the config log, or to a new assignment."""
        if isinstance(event, RestartRequest):
            self._restart_here(event)
        elif isinstance(event, LoggerLevel):
            self.loggers.set_level(event.namespace, event.level)
        else:
            self.group.configs_changed()
            self.runtime.reconcile()
            self._cleanup.soon()

    @property
    def _configs(self) -> Mapping[str, Properties]:
        return self.store.configs.connectors

    def require_leader(self) -> None:
        if not self.group.leads:
            raise NotLeader(self.group.leader_url)

    # Configurations.

    async def put_config(
        self,
        name: str,
        config: Properties,
        *,
        may_replace: bool,
        target: TargetState | None = None,
    ) -> Created:
        """Create or replace a connector."""
        self.require_leader()
        infos = await self.validate(config)
        self._check_group(name, config, infos)
        if errors := errors_of(infos):
            lines = "\n".join(errors)
            raise bad_request(
                f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n"
                f"{lines}\nYou can also find the above list of errors at the endpoint "
                "`/connector-plugins/{connectorType}/config/validate`"
            )
        written = [] if target is None else [records.target_state(name, target)]
        # Two requests must not both find that the connector is missing.
        async with self._creating:
            exists = name in self._configs
            if exists and not may_replace:
                raise ApiError(409, 409, f"Connector {name} already exists")
            await self.store.config_log.append([*written, records.connector_config(name, config)])
        await self._settle(name)
        return Created(not exists, self.info(name))

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> Created:
        """Change some settings; null removes one."""
        self.require_leader()
        config = {**self._config_of(name), **patch}
        kept = {each: value for each, value in config.items() if value is not None}
        return await self.put_config(name, kept, may_replace=True)

    async def delete(self, name: str) -> None:
        self.require_leader()
        self._config_of(name)
        await self.store.config_log.append(records.connector_removal(name))

    async def put_task_configs(self, name: str, configs: Sequence[Properties]) -> None:
        """Store the configurations of tasks if they differ, with variables instead of secrets."""
        state = self.store.configs
        raw = [with_variables(self._configs.get(name, {}), each) for each in configs]
        same = (
            name not in state.inconsistent
            and [state.task_configs.get(each) for each in state.tasks(name)] == raw
            and name in state.task_counts
            and state.applied.get(name) == self._configs.get(name)
        )
        if same or name not in self._configs:
            return
        if self.group.leads:
            await self.store.config_log.append(records.task_configs(name, raw))
        elif self._workers is not None:
            await self._workers.put_tasks(self.group.leader_url, name, raw)

    async def write_task_configs(self, name: str, configs: Sequence[Properties]) -> None:
        """Store the configurations of tasks for another worker, which runs the connector."""
        self.require_leader()
        self._config_of(name)
        await self.store.config_log.append(records.task_configs(name, configs))

    async def fence(self, name: str) -> None:
        """Fence earlier tasks of a source connector; the leader does so."""
        if self._workers is None:
            return
        if self.group.leads:
            await self._workers.fencing.run(name)
        else:
            await self._workers.fence(self.group.leader_url, name)

    async def validate(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the validation of a configuration; `ApiError` 400 if its class is unknown."""
        try:
            resolved = self.providers.resolve(config)
            async with self._validating:
                infos = await call_in_thread("validation", self.validation.validate, resolved)
        except ConnectError as error:
            raise bad_request(self.providers.hide(str(error))) from None
        hide_secrets(infos, config, self.providers.hide)
        return infos

    def _check_group(self, name: str, config: Properties, infos: dict[str, Any]) -> None:
        """Refuse a sink whose consumer group would be that of the workers."""
        workers = self.settings.group
        if workers is None or "topics" not in {each["value"]["name"] for each in infos["configs"]}:
            return
        if group_id(config, name) == workers.group_id:
            value = next(each["value"] for each in infos["configs"] if each["value"]["name"] == "name")
            value["errors"].append(
                f"Consumer group for sink connector named {name} conflicts with Connect worker group "
                f"{workers.group_id}"
            )

    async def _settle(self, name: str) -> None:
        """Let a standalone worker answer after the connector has started, as Kafka Connect does."""
        if self.settings.group is not None:
            return
        slot = self.runtime.connectors.get(name)
        if slot is not None:
            await asyncio.wait_for(slot.settled(), _SETTLE_S)

    def _config_of(self, name: str) -> Properties:
        config = self._configs.get(name)
        if config is None:
            raise not_found(f"Connector {name} not found")
        return config

    # Target states and restarts.

    async def set_target(self, name: str, target: TargetState) -> None:
        """Pause or resume a connector; any worker may write that."""
        if name not in self._configs:
            raise not_found(f"Unknown connector {name}")
        await self.store.config_log.append([records.target_state(name, target)])

    async def stop(self, name: str) -> None:
        """Stop a connector and remove its tasks."""
        self.require_leader()
        if name not in self._configs:
            raise not_found(f"Unknown connector {name}")
        written = [records.target_state(name, TargetState.STOPPED)]
        if self.store.configs.task_counts.get(name):
            written += records.task_configs(name, [])
        await self.store.config_log.append(written)

    async def restart_connector(self, name: str) -> None:
        self._require_known(name)
        slot = self.runtime.connectors.get(name)
        if slot is None:
            raise NotLeader(self._elsewhere(name))
        slot.restart()
        await self._settle(name)

    async def restart_task(self, task: TaskId) -> None:
        self._require_known(task.connector)
        if task not in self.store.configs.task_configs:
            raise not_found(f"Unknown task: {task}")
        slot = self.runtime.tasks.get(task)
        if slot is None:
            raise NotLeader(self._elsewhere(task))
        slot.restart()

    def _require_known(self, name: str) -> None:
        if name not in self._configs:
            raise not_found(f"Unknown connector: {name}")

    def _elsewhere(self, work: str | TaskId) -> str | None:
        """Return the worker to ask: the owner if this worker leads, else the leader."""
        return self.group.owner_url(work) if self.group.leads else self.group.leader_url

    async def restart(self, request: RestartRequest) -> dict[str, Any]:
        """Restart a connector and tasks wherever they run; return the statuses that follow."""
        self.require_leader()
        name = request.connector
        self._require_known(name)
        if name not in self.store.statuses.connectors:
            raise not_found(f"Status for connector {name} not found")
        answer = self.status(name, request)
        record = records.restart_request(
            name, include_tasks=request.include_tasks, only_failed=request.only_failed
        )
        await self.store.config_log.append([record])
        return answer

    def _restart_here(self, request: RestartRequest) -> None:
        statuses, name = self.store.statuses, request.connector
        slot = self.runtime.connectors.get(name)
        if slot is not None and _restarts(request, statuses.connectors.get(name)):
            slot.restart()
        for task, each in self.runtime.tasks.items():
            restarts = request.include_tasks and _restarts(request, statuses.task(task))
            if task.connector == name and restarts:
                each.restart()

    # Answers.

    def info(self, name: str) -> dict[str, Any]:
        config = self._config_of(name)
        tasks = [each.to_json() for each in self.store.configs.tasks(name)]
        return {"name": name, "config": dict(config), "tasks": tasks, "type": self._type(config)}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        self._config_of(name)
        configs = self.store.configs
        return [
            {"id": each.to_json(), "config": dict(configs.task_configs[each])} for each in configs.tasks(name)
        ]

    def status(self, name: str, restarting: RestartRequest | None = None) -> dict[str, Any]:
        found = self.store.statuses.connectors.get(name)
        if found is None:
            raise not_found(f"No status found for connector {name}")
        tasks = sorted(self.store.statuses.tasks.get(name, {}).items())
        include = restarting is not None and restarting.include_tasks
        return {
            "name": name,
            "connector": _state(found, restarting),
            "tasks": [
                {"id": number, **_state(each, restarting if include else None)} for number, each in tasks
            ],
            "type": self._type(self._configs.get(name)),
        }

    def task_status(self, task: TaskId) -> dict[str, Any]:
        found = self.store.statuses.task(task)
        if found is None:
            raise not_found(f"No status found for task {task}")
        return {"id": task.task, **_state(found, None)}

    def topics(self, name: str) -> list[str]:
        return list(self.store.statuses.topics.get(name, {}))

    def reset_topics(self, name: str) -> None:
        self.store.status_log.append_soon([topic_removal(each, name) for each in self.topics(name)])

    def _type(self, config: Properties | None) -> str:
        try:
            return "sink" if self.plugins.is_sink((config or {})["connector.class"]) else "source"
        except (KeyError, ConnectError):
            return "unknown"


def _restarts(request: RestartRequest, status: Status | None) -> bool:
    return not request.only_failed or (status is not None and status.state is State.FAILED)


def _state(status: Status, restarting: RestartRequest | None) -> dict[str, Any]:
    restarts = restarting is not None and _restarts(restarting, status)
    state = State.RESTARTING if restarts else status.state
    fields: dict[str, Any] = {"state": state.value, "worker_id": status.worker_id}
    if status.trace:
        fields["trace"] = status.trace
    if status.version:
        fields["version"] = status.version
    return fields
