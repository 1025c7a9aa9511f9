"""What runs on which worker: the interface of the group of workers, and that of a worker alone."""

from __future__ import annotations

from typing import Protocol

from moldau.pipelines.connect.storage.config_state import ConfigState
from moldau.pipelines.connect.storage.types import TaskId


class Group(Protocol):
    """The group of workers as the herder sees it."""

    @property
    def leads(self) -> bool:
        """Whether this worker decides: it alone writes configurations."""
        ...

    @property
    def leader_url(self) -> str | None:
        """The URL of the leader; None while it is unknown."""
        ...

    @property
    def generation(self) -> int: ...

    def owns_connector(self, name: str) -> bool: ...

    def owns_task(self, task: TaskId) -> bool: ...

    def owner_url(self, work: str | TaskId) -> str | None:
        """Return the URL of the worker that runs a connector or task; only the leader knows it."""
        ...

    def configs_changed(self) -> None:
        """Called when connectors or tasks may have been added or removed."""
        ...

    @property
    def has_joined(self) -> bool:
        """Whether this worker is, or was, a member whose leader is known."""
        ...

    async def settled(self) -> None:
        """Wait until no rebalance is going on; `ApiError` 409 if that takes too long."""
        ...


class Alone:
    """A standalone worker: it leads, and runs everything."""

    leads = True
    has_joined = True
    leader_url = None
    generation = 0

    def __init__(self, configs: ConfigState) -> None:
        self._configs = configs

    def owns_connector(self, name: str) -> bool:
        return name in self._configs.connectors

    def owns_task(self, task: TaskId) -> bool:
        return task in self._configs.task_configs

    def owner_url(self, work: str | TaskId) -> str | None:
        return None

    def configs_changed(self) -> None:
        return

    async def settled(self) -> None:
        return
