"""What a task needs to run, as plain data: it is sent to the process that hosts the task.

It contains secrets (resolved settings), so it is sent over the worker's own channel and never printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from moldau.config.providers import hide
from moldau.pipelines.connect.storage.types import TaskId


@dataclass(frozen=True, slots=True)
class TaskSpec:
    connector: str
    task: int
    #: The connector's settings and the task's own, with secrets resolved.
    connector_config: Mapping[str, str] = field(repr=False)
    task_config: Mapping[str, str] = field(repr=False)
    #: The worker's settings: converters and clients.
    worker_config: Mapping[str, str] = field(repr=False)
    #: The topic of source offsets, for exactly-once delivery; None in a standalone worker.
    offsets_topic: str | None = None
    #: The transactional id of a source task with exactly-once support.
    transactional_id: str | None = None
    paused: bool = False
    #: The secrets in the settings, which logs and dead letters must not show.
    secrets: Sequence[str] = field(default=(), repr=False)

    @property
    def id(self) -> TaskId:
        return TaskId(self.connector, self.task)

    def hide(self, text: str) -> str:
        """Return a text without the secrets of the task."""
        return hide(text, self.secrets)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TaskSpec:
        return cls(**value)
