"""The statuses of connectors, tasks and the topics they use, replayed from the status topic.

| key | value |
|---|---|
| `status-connector-NAME` | `{"state": "RUNNING", "trace": null, "worker_id": "host:8083", "generation": 1, "version": "…"}` |
| `status-task-NAME-N` | the same |
| `status-topic-TOPIC:connector-NAME` | `{"topic": {"name": …, "connector": …, "task": N, "discoverTimestamp": MS}}` |
"""  # noqa: E501 - a table

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from moldau.pipelines.connect.storage.types import Record, TaskId, decode, encode, task_id

CONNECTOR: Final = "status-connector-"
TASK: Final = "status-task-"
TOPIC: Final = "status-topic-"
_SEPARATOR: Final = ":connector-"


class State(Enum):
    """The state of a connector or task, as Kafka Connect names it."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    DESTROYED = "DESTROYED"


@dataclass(frozen=True, slots=True)
class Status:
    state: State
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state.value,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }


class StatusState:
    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, int]] = {}

    def task(self, task: TaskId) -> Status | None:
        return self.tasks.get(task.connector, {}).get(task.task)

    def replay(self, key: bytes, value: bytes | None) -> None:
        text = key.decode("utf-8", "replace")
        if text.startswith(CONNECTOR):
            self._replay_connector(text.removeprefix(CONNECTOR), _status(decode(value)))
        elif text.startswith(TASK):
            self._replay_task(task_id(text.removeprefix(TASK)), _status(decode(value)))
        elif text.startswith(TOPIC):
            topic, separator, connector = text.removeprefix(TOPIC).partition(_SEPARATOR)
            if separator:
                self._replay_topic(topic, connector, decode(value))

    def _replay_connector(self, connector: str, status: Status | None) -> None:
        if status is None:
            self.connectors.pop(connector, None)
            self.tasks.pop(connector, None)
        else:
            self.connectors[connector] = status

    def _replay_task(self, task: TaskId | None, status: Status | None) -> None:
        if task is None:
            return
        if status is None:
            self.tasks.get(task.connector, {}).pop(task.task, None)
        else:
            self.tasks.setdefault(task.connector, {})[task.task] = status

    def _replay_topic(self, topic: str, connector: str, value: Any) -> None:
        found = value.get("topic") if isinstance(value, dict) else None
        if not isinstance(found, dict):
            self.topics.get(connector, {}).pop(topic, None)
        else:
            self.topics.setdefault(connector, {})[topic] = int(found.get("task") or 0)


def connector_status(connector: str, status: Status) -> Record:
    return f"{CONNECTOR}{connector}".encode(), _value(status)


def task_status(task: TaskId, status: Status) -> Record:
    return f"{TASK}{task}".encode(), _value(status)


def topic_status(topic: str, task: TaskId, now_ms: int) -> Record:
    fields = {"name": topic, "connector": task.connector, "task": task.task, "discoverTimestamp": now_ms}
    return _topic_key(topic, task.connector), encode({"topic": fields})


def topic_removal(topic: str, connector: str) -> Record:
    return _topic_key(topic, connector), None


def _topic_key(topic: str, connector: str) -> bytes:
    return f"{TOPIC}{topic}{_SEPARATOR}{connector}".encode()


def _value(status: Status) -> bytes | None:
    return None if status.state is State.DESTROYED else encode(status.to_json())


def _status(value: Any) -> Status | None:
    if not isinstance(value, dict):
        return None
    try:
        return Status(
            state=State(value["state"]),
            worker_id=str(value.get("worker_id")),
            generation=int(value.get("generation") or 0),
            trace=value.get("trace"),
            version=value.get("version"),
        )
    except (KeyError, ValueError):
        return None
