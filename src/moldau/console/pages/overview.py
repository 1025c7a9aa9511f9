"""The first page: health, rates, lag; and the stream that announces changes to all pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response

from moldau.console.web.call import Call, CopyAs, Page
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.streams import COMMENT, event, stream
from moldau.lag.documents import group_document
from moldau.lag.evaluation.rules import Status

_POINTS: Final = 300
_MAX_VERDICTS: Final = 12
_HEARTBEAT_S: Final = 10.0


async def overview(call: Call) -> Page:
    snapshot = await call.snapshot()
    word, reason = snapshot.health
    lags = sorted(
        call.view.lag.groups.values(), key=lambda each: (each.status, each.total_lag or 0), reverse=True
    )
    data: dict[str, Any] = {
        "health": word,
        "reason": reason,
        "cluster_id": snapshot.cluster_id,
        "controller": snapshot.controller_id,
        "brokers": len(snapshot.brokers),
        "brokers_online": len(snapshot.brokers) - snapshot.offline_brokers,
        "topics": len(snapshot.topics),
        "partitions": snapshot.partitions,
        "under_replicated": snapshot.under_replicated,
        "without_leader": snapshot.offline,
        "groups": len(snapshot.groups),
        "rates": [
            [each.time_ms, round(each.messages, 2), round(each.bytes, 2)]
            for each in list(call.view.history.rates)[-_POINTS:]
        ],
        "lag": [
            {name: value for name, value in group_document(each).items() if name != "partitions"}
            for each in lags[:_MAX_VERDICTS]
        ],
        "lag_problems": sum(each.status > Status.OK for each in lags),
    }
    copy = CopyAs(
        tool(call, "kafka-cluster", "list-endpoints"),
        curl(call),
        admin_script(call, "print(admin.describe_cluster())"),
    )
    return Page("overview", "Overview", data, copy=copy)


async def events(call: Call) -> Response:
    """Announce every new snapshot; the pages fetch what they show."""

    async def announce() -> AsyncIterator[str]:
        version = call.view.snapshot.version
        while True:
            if await call.view.newer(version, _HEARTBEAT_S):
                snapshot = call.view.snapshot
                version = snapshot.version
                yield event("snapshot", {"version": version, "error": snapshot.error})
            else:
                yield COMMENT

    return stream(announce())
