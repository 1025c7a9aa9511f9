"""Writes the statuses of what runs on this worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from moldau.base.errors import KafkaError
from moldau.pipelines.connect.storage.status_state import State, Status, topic_status
from moldau.pipelines.connect.storage.store import Store
from moldau.pipelines.connect.storage.types import TaskId

_REFRESH_S: Final = 5.0


class Reports:
    """The statuses of one worker. `generation` is that of the group when a status is written."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        generation: Callable[[], int],
        clock_ms: Callable[[], int],
        *,
        track_topics: bool,
        hide: Callable[[str], str],
    ) -> None:
        """`hide` removes secrets from traces."""
        self._store = store
        self.worker_id = worker_id
        self._generation = generation
        self._clock_ms = clock_ms
        self._track_topics = track_topics
        self.hide = hide

    def connector(self, name: str, state: State, version: str | None, trace: str | None = None) -> None:
        self._store.put_connector_status(name, self._status(state, version, trace))

    def task(self, task: TaskId, state: State, version: str | None, trace: str | None = None) -> None:
        self._store.put_task_status(task, self._status(state, version, trace))

    def topic(self, topic: str, task: TaskId) -> None:
        """Record that a connector uses a topic, unless that is known."""
        if self._track_topics and topic not in self._store.statuses.topics.get(task.connector, {}):
            self._store.status_log.append_soon([topic_status(topic, task, self._clock_ms())])

    async def unassign_connector(self, name: str, version: str | None) -> None:
        """Report that a connector does not run here any more, unless it runs elsewhere already."""
        await self._refresh()
        if self._may_replace(self._store.statuses.connectors.get(name)):
            self.connector(name, State.UNASSIGNED, version)

    async def unassign_task(self, task: TaskId, version: str | None) -> None:
        """Report that a task does not run here any more, unless it runs elsewhere already."""
        await self._refresh()
        if self._may_replace(self._store.statuses.task(task)):
            self.task(task, State.UNASSIGNED, version)

    async def _refresh(self) -> None:
        # Without the brokers the decision rests on what is known.
        with contextlib.suppress(KafkaError, OSError, TimeoutError):
            await asyncio.wait_for(self._store.refresh_statuses(), _REFRESH_S)

    def _may_replace(self, status: Status | None) -> bool:
        return status is None or status.worker_id == self.worker_id or status.generation <= self._generation()

    def _status(self, state: State, version: str | None, trace: str | None) -> Status:
        shown = None if trace is None else self.hide(trace)
        return Status(state, self.worker_id, self._generation(), shown, version)
