"""What the worker asks of a host of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.storage.types import Record, TaskId
from moldau.pipelines.connect.worker.task.control import Event
from moldau.pipelines.connect.worker.task.spec import TaskSpec

#: Called on the worker's event loop with the reports of one task. None: its process ended without a report.
OnEvent = Callable[[Event | None, str | None], None]


class Offsets(Protocol):
    """The worker's offsets, which tasks ask for."""

    async def read_offsets(
        self, connector: str, partitions: Sequence[Any]
    ) -> list[dict[str, Any] | None]: ...

    async def append_offsets(self, records: Sequence[Record]) -> None: ...


class HostedTask(Protocol):
    """A task that was started."""

    def pause(self, paused: bool) -> None: ...

    async def stop(self, timeout_s: float) -> bool:
        """Stop the task; return False if it was interrupted, because it did not stop in time.

        An interrupted task may run on for a while, but stores no offsets.
        """
        ...


class TaskHost(Protocol):
    async def start(self, offsets: Offsets) -> None: ...

    def run(self, spec: TaskSpec, on_event: OnEvent) -> HostedTask:
        """Start a task."""
        ...

    async def close(self) -> None: ...

    async def failed(self) -> str:
        """Wait until no task can be run any more, and return the reason."""
        ...


def described(task: TaskId) -> str:
    """Return the name of a task in lists of threads and Spark jobs."""
    return f"task {task}"


def cancelled() -> ConnectError:
    """Return the answer to a task that stores offsets although it did not stop in time."""
    return ConnectError("The task was cancelled, because it did not stop in time.")
