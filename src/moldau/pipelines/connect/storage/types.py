"""Names that all states share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

#: Keys and values of records; a tombstone has no value.
Record = tuple[bytes, bytes | None]
Properties = Mapping[str, str]


class TaskId(NamedTuple):
    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"

    def to_json(self) -> dict[str, Any]:
        return {"connector": self.connector, "task": self.task}


class TargetState(Enum):
    """What the user wants a connector to do."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


def encode(value: Any) -> bytes:
    """Return JSON as Kafka Connect's converter without schemas writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode(data: bytes | None) -> Any:
    """Return the JSON value; None for a tombstone and for bytes that are not JSON."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return None


def task_id(text: str) -> TaskId | None:
    """Parse `connector-task`; names of connectors may contain hyphens."""
    name, separator, number = text.rpartition("-")
    if not separator or not name or not (number.isascii() and number.isdigit()):
        return None
    return TaskId(name, int(number))
