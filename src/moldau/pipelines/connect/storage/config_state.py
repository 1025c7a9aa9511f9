"""The configurations of all connectors, replayed from the config topic.

Task configs take effect together with the commit record that follows them. After a compaction a commit may be
without some of its task configs; the connector is then *inconsistent* until its tasks are configured again.
Every commit of a connector raises the generation of its task configs: running tasks of an older one are
stale.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from moldau.pipelines.connect.storage import config_records as records
from moldau.pipelines.connect.storage.types import Properties, TargetState, TaskId, decode, task_id

logger = logging.getLogger(__name__)


class SessionKey(NamedTuple):
    """The key that signs requests between workers."""

    key: bytes
    algorithm: str
    created_ms: int


class RestartRequest(NamedTuple):
    connector: str
    include_tasks: bool = False
    only_failed: bool = False


class LoggerLevel(NamedTuple):
    namespace: str
    level: str


#: What a record asks for beside a change of the state.
Event = RestartRequest | LoggerLevel | None


class ConfigState:
    def __init__(self) -> None:
        #: The offset of the last record; -1 if there is none.
        self.offset = -1
        self.connectors: dict[str, Properties] = {}
        self.task_configs: dict[TaskId, Properties] = {}
        self.task_counts: dict[str, int] = {}
        self.target_states: dict[str, TargetState] = {}
        #: The connector's config when its tasks were configured.
        self.applied: dict[str, Properties] = {}
        #: The number of times the tasks of a connector were configured.
        self.generations: dict[str, int] = {}
        self.inconsistent: set[str] = set()
        #: The number of tasks of which older producers have been fenced (`exactly.once.source.support`).
        self.fenced_counts: dict[str, int] = {}
        self.pending_fencing: set[str] = set()
        self.session_key: SessionKey | None = None
        self._deferred: dict[str, dict[TaskId, Properties]] = {}

    def tasks(self, connector: str) -> list[TaskId]:
        if connector in self.inconsistent:
            return []
        return [TaskId(connector, index) for index in range(self.task_counts.get(connector, 0))]

    def all_tasks(self) -> list[TaskId]:
        return [each for name in sorted(self.connectors) for each in self.tasks(name)]

    def target_state(self, connector: str) -> TargetState:
        return self.target_states.get(connector, TargetState.STARTED)

    def replay(self, key: bytes, value: bytes | None, offset: int) -> Event:
        """Apply a record; return the event that it contains, if it is one."""
        self.offset = offset
        text = key.decode("utf-8", "replace")
        if text == records.SESSION_KEY:
            self._replay_session_key(decode(value))
            return None
        for prefix, replay in _REPLAYS:
            if text.startswith(prefix):
                return replay(self, text.removeprefix(prefix), decode(value))
        logger.warning("The config topic contains a record with the unknown key %r", text)
        return None

    def _replay_target_state(self, connector: str, value: Any) -> None:
        if not isinstance(value, dict):
            self.target_states.pop(connector, None)
            return
        text = value.get("state.v2") or value.get("state")
        try:
            self.target_states[connector] = TargetState(text)
        except ValueError:
            logger.warning("The target state %r of connector %s is unknown", text, connector)

    def _replay_connector(self, connector: str, value: Any) -> None:
        properties = _properties(value)
        if value is None:
            self._remove(connector)
        elif properties is None:
            logger.warning("The config of connector %s is not valid", connector)
        else:
            self.connectors[connector] = properties

    def _replay_task(self, text: str, value: Any) -> None:
        task, properties = task_id(text), _properties(value)
        if task is None or properties is None:
            logger.warning("The config of task %s is not valid", text)
            return
        self._deferred.setdefault(task.connector, {})[task] = properties

    def _replay_commit(self, connector: str, value: Any) -> None:
        if connector not in self.connectors:
            # The connector was deleted, and the topic is compacted.
            self._remove(connector)
            return
        count = value.get("tasks") if isinstance(value, dict) else None
        if not isinstance(count, int):
            logger.warning("The number of tasks of connector %s is not valid", connector)
            return
        deferred = self._deferred.pop(connector, {})
        self.task_counts[connector] = count
        self.pending_fencing.add(connector)
        if not all(TaskId(connector, index) in deferred for index in range(count)):
            self.inconsistent.add(connector)
            return
        self.inconsistent.discard(connector)
        self._discard_tasks(connector)
        self.task_configs.update(deferred)
        self.generations[connector] = self.generations.get(connector, -1) + 1
        self.applied[connector] = self.connectors[connector]

    def _replay_task_count(self, connector: str, value: Any) -> None:
        count = value.get("task-count") if isinstance(value, dict) else None
        if isinstance(count, int):
            self.fenced_counts[connector] = count
            self.pending_fencing.discard(connector)

    def _replay_restart(self, connector: str, value: Any) -> Event:
        if not isinstance(value, dict):
            return None
        return RestartRequest(connector, value.get("include-tasks") is True, value.get("only-failed") is True)

    def _replay_logger(self, namespace: str, value: Any) -> Event:
        level = value.get("level") if isinstance(value, dict) else None
        return LoggerLevel(namespace, level) if isinstance(level, str) else None

    def _replay_session_key(self, value: Any) -> None:
        if not isinstance(value, dict):
            return
        try:
            key = base64.b64decode(value["key"], validate=True)
            created = int(value["creation-timestamp"])
            self.session_key = SessionKey(key, str(value["algorithm"]), created)
        except (KeyError, TypeError, ValueError, binascii.Error):
            logger.warning("The session key in the config topic is not valid")

    def _remove(self, connector: str) -> None:
        for states in (self.connectors, self.task_counts, self.applied, self._deferred):
            states.pop(connector, None)
        self.inconsistent.discard(connector)
        self._discard_tasks(connector)

    def _discard_tasks(self, connector: str) -> None:
        for task in [each for each in self.task_configs if each.connector == connector]:
            del self.task_configs[task]


def _properties(value: Any) -> Properties | None:
    properties = value.get("properties") if isinstance(value, dict) else None
    return properties if isinstance(properties, dict) else None


#: `connector-` is not a prefix of `restart-connector-`, so the order is free.
_REPLAYS: Final[tuple[tuple[str, Callable[[ConfigState, str, Any], Event]], ...]] = (
    (records.TARGET_STATE, ConfigState._replay_target_state),
    (records.CONNECTOR, ConfigState._replay_connector),
    (records.TASK, ConfigState._replay_task),
    (records.COMMIT, ConfigState._replay_commit),
    (records.FENCING, ConfigState._replay_task_count),
    (records.RESTART, ConfigState._replay_restart),
    (records.LOGGER, ConfigState._replay_logger),
)
