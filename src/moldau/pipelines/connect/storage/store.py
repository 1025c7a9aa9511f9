"""The state of a worker: configurations, statuses and offsets, each replayed from a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.pipelines.connect.storage.config_state import ConfigState, Event
from moldau.pipelines.connect.storage.log import Log
from moldau.pipelines.connect.storage.offset_state import OffsetState, offset_record
from moldau.pipelines.connect.storage.status_state import (
    State,
    Status,
    StatusState,
    connector_status,
    task_status,
)
from moldau.pipelines.connect.storage.types import Record, TaskId


class Store:
    def __init__(self, config_log: Log, status_log: Log, offset_log: Log) -> None:
        self.configs = ConfigState()
        self.statuses = StatusState()
        self._offsets = OffsetState()
        self.config_log = config_log
        self.status_log = status_log
        self.offset_log = offset_log

    async def start(self, on_change: Callable[[Event], None]) -> None:
        """Read all state; then call `on_change` after every record of a configuration, with its event."""
        started = False

        def replay_config(key: bytes, value: bytes | None, offset: int) -> None:
            event = self.configs.replay(key, value, offset)
            if started:
                on_change(event)

        await self.offset_log.start(lambda key, value, offset: self._offsets.replay(key, value))
        await self.status_log.start(lambda key, value, offset: self.statuses.replay(key, value))
        await self.config_log.start(replay_config)
        # Requests of the time before, such as restarts, are not repeated.
        started = True

    async def close(self) -> None:
        for log in (self.config_log, self.status_log, self.offset_log):
            await log.close()

    # Statuses.

    async def refresh_statuses(self) -> None:
        """Read the statuses that other workers have written."""
        await self.status_log.read_to_end()

    def put_connector_status(self, connector: str, status: Status) -> None:
        self.status_log.append_soon([connector_status(connector, status)])

    def put_task_status(self, task: TaskId, status: Status) -> None:
        self.status_log.append_soon([task_status(task, status)])

    def destroy_statuses(self, worker_id: str) -> None:
        """Delete the statuses of connectors and tasks that are not configured any more."""
        destroyed = Status(State.DESTROYED, worker_id)
        for connector, tasks in list(self.statuses.tasks.items()):
            kept = {each.task for each in self.configs.tasks(connector)}
            for number in [each for each in tasks if each not in kept]:
                self.put_task_status(TaskId(connector, number), destroyed)
        for connector in [each for each in self.statuses.connectors if each not in self.configs.connectors]:
            self.put_connector_status(connector, destroyed)

    # Offsets of sources.

    async def read_offsets(
        self, connector: str, partitions: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any] | None]:
        """Return the newest offsets of source partitions."""
        await self.offset_log.read_to_end()
        return [self._offsets.get(connector, each) for each in partitions]

    async def all_offsets(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        await self.offset_log.read_to_end()
        return self._offsets.of(connector)

    async def write_offsets(
        self, connector: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> None:
        await self.append_offsets([offset_record(connector, *each) for each in offsets])

    async def append_offsets(self, records: Sequence[Record]) -> None:
        await self.offset_log.append(records)
