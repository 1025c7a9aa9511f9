"""The statuses of heartbeat responses: conditions that a client must know although the request succeeded."""

from __future__ import annotations

from enum import IntEnum

from moldau.protocol.messages.streams_group_heartbeat import Status


class StatusCode(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


def status(code: StatusCode, detail: str) -> Status:
    return Status(status_code=int(code), status_detail=detail)
