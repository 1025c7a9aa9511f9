"""The records of the config topic, in the formats of Kafka Connect.

| key | value |
|---|---|
| `connector-NAME` | `{"properties": {…}}`; a tombstone deletes the connector |
| `task-NAME-N` | `{"properties": {…}}`, applied by the next `commit-NAME` |
| `commit-NAME` | `{"tasks": N}` |
| `target-state-NAME` | `{"state": "PAUSED", "state.v2": "STOPPED"}` |
| `tasks-fencing-NAME` | `{"task-count": N}` |
| `restart-connector-NAME` | `{"include-tasks": false, "only-failed": false}` |
| `logger-cluster-NAMESPACE` | `{"level": "DEBUG"}` |
| `session-key` | `{"key": BASE64, "algorithm": "HmacSHA256", "creation-timestamp": MS}` |
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from moldau.pipelines.connect.storage.types import Properties, Record, TargetState, encode

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET_STATE: Final = "target-state-"
FENCING: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"


def connector_config(name: str, config: Properties) -> Record:
    return _record(f"{CONNECTOR}{name}", {"properties": dict(config)})


def connector_removal(name: str) -> list[Record]:
    return [(f"{CONNECTOR}{name}".encode(), None), (f"{TARGET_STATE}{name}".encode(), None)]


def task_configs(name: str, configs: Sequence[Properties]) -> list[Record]:
    """Return the configs of all tasks, and the record that applies them together."""
    tasks = [
        _record(f"{TASK}{name}-{index}", {"properties": dict(each)}) for index, each in enumerate(configs)
    ]
    return [*tasks, _record(f"{COMMIT}{name}", {"tasks": len(configs)})]


def target_state(name: str, state: TargetState) -> Record:
    """Return the target state; workers before Kafka 3.5 read `state`, which has no STOPPED."""
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _record(f"{TARGET_STATE}{name}", {"state": older.value, "state.v2": state.value})


def task_count(name: str, count: int) -> Record:
    return _record(f"{FENCING}{name}", {"task-count": count})


def restart_request(name: str, *, include_tasks: bool, only_failed: bool) -> Record:
    return _record(f"{RESTART}{name}", {"include-tasks": include_tasks, "only-failed": only_failed})


def logger_level(namespace: str, level: str) -> Record:
    return _record(f"{LOGGER}{namespace}", {"level": level})


def session_key(key: bytes, algorithm: str, created_ms: int) -> Record:
    fields = {
        "key": base64.b64encode(key).decode(),
        "algorithm": algorithm,
        "creation-timestamp": created_ms,
    }
    return _record(SESSION_KEY, fields)


def _record(key: str, value: object) -> Record:
    return key.encode(), encode(value)
