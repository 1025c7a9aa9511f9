"""The format of topics of late records. Task workers and planners import it, so it does not import Spark."""

from __future__ import annotations

from collections.abc import Mapping

#: The prefix of the headers `topic`, `partition` and `offset`.
LATE_HEADER = "__streams.late."
#: Late records have old timestamps: retention by time would delete them at once.
LATE_CONFIG: Mapping[str, str] = {
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
}
