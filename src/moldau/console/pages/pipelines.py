"""Pipelines of this machine: what the state folder of `moldau pipeline` says about them.

The folder is read by its documented layout; no code of pipelines is imported, and nothing is locked. Only a
request to stop is written.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any, Final

from moldau.console.pages.flow import Node, picture, topic_node
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found
from moldau.console.web.commands import curl, start_command

_MAX_ENTRIES: Final = 500
_MAX_BYTES: Final = 4 * 1024 * 1024
#: Where `moldau pipeline` keeps its state, for a console without a folder.
_USUAL_FOLDER: Final = "state/pipelines"
_RUNNING: Final = ("starting", "running", "waiting")


async def pipelines(call: Call) -> Page:
    await call.snapshot()
    folder = call.services.pipelines_folder
    rows: list[dict[str, Any]] = []
    if folder is not None:
        rows = [_summary(each) for each in await asyncio.to_thread(_read_all, Path(folder))]
    data = {"configured": folder is not None, "folder": folder, "pipelines": rows}
    start = start_command(call, "--pipelines", _USUAL_FOLDER, "pipelines.folder")
    copy = _copy(call, folder or _USUAL_FOLDER, "list", "folder.names()")
    return Page("pipelines", "Pipelines", data, {"start": start}, copy)


async def pipeline(call: Call) -> Page:
    await call.snapshot()
    status = await _status(call)
    data: dict[str, Any] = {
        **_summary(status),
        "run": status.get("run") or "",
        "file": status.get("file") or "",
        "error": status.get("error") or "",
        "checks": _mapping(status.get("checks")),
        "sinks": [each for each in status.get("sinks") or () if isinstance(each, dict)],
        "queries": [_query(each) for each in status.get("queries") or () if isinstance(each, dict)],
    }
    name = call.path("pipeline")
    copy = _copy(call, str(_folder(call)), f"status {shlex.quote(name)}", f"folder.read({name!r})")
    return Page("pipeline", name, data, {"picture": _picture(call, data)}, copy)


def _picture(call: Call, data: dict[str, Any]) -> dict[str, Any] | None:
    own = f"pipeline {data['name']}"
    rate = f"{data['state']} · {data['rows_per_second']:,.1f} rows/s"
    nodes, edges = [Node(own, data["name"], rate, strong=True)], []
    for topic in dict.fromkeys(topic for query in data["queries"] for topic in query["topics"]):
        nodes.append(topic_node(call, topic, "source"))
        edges.append((f"topic {topic}", own))
    for number, sink in enumerate(data["sinks"]):
        if sink.get("topic"):
            node = topic_node(call, str(sink["topic"]), str(sink.get("role") or "sink"))
        else:
            node = Node(f"sink {number}", str(sink.get("format")), str(sink.get("path") or "sink"))
        nodes.append(node)
        edges.append((own, node.id))
    return picture(nodes, edges)


def _copy(call: Call, folder: str, command: str, expression: str) -> CopyAs:
    python = [
        "from pathlib import Path",
        "",
        "from moldau.pipelines.runtime.state import StateFolder",
        "",
        f"folder = StateFolder(Path({folder!r}))",
        f"print({expression})",
    ]
    command = f"moldau pipeline {command} --state-dir {shlex.quote(folder)}"
    return CopyAs(command, curl(call), "\n".join(python))


async def stop_pipeline(call: Call) -> Done:
    """Request the stop of a pipeline, as `moldau pipeline stop` does."""
    await _status(call)
    name = call.path("pipeline")
    await asyncio.to_thread((_folder(call) / name / "stop").touch)
    return Done(f"Pipeline {name} is asked to stop.", call.url("pipelines", name))


def _folder(call: Call) -> Path:
    if call.services.pipelines_folder is None:
        raise not_found("The state folder of pipelines (--pipelines FOLDER)")
    return Path(call.services.pipelines_folder)


async def _status(call: Call) -> dict[str, Any]:
    name, folder = call.path("pipeline"), _folder(call)
    if name.startswith(".") or "/" in name:
        raise not_found(f"Pipeline {name}")
    found = await asyncio.to_thread(_read, folder / name)
    if found is None:
        raise not_found(f"Pipeline {name}")
    return found


def _read_all(folder: Path) -> list[dict[str, Any]]:
    found = (_read(each.parent) for each in sorted(folder.glob("*/status.json"))[:_MAX_ENTRIES])
    return [each for each in found if each is not None]


def _read(folder: Path) -> dict[str, Any] | None:
    file = folder / "status.json"
    try:
        if file.stat().st_size > _MAX_BYTES:
            return None
        status = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return {**status, "name": folder.name} if isinstance(status, dict) else None


def _summary(status: dict[str, Any]) -> dict[str, Any]:
    queries = [each for each in status.get("queries") or () if isinstance(each, dict)]
    return {
        "name": status["name"],
        "state": str(status.get("state") or ""),
        "running": status.get("state") in _RUNNING,
        "updated": status.get("updated_ms"),
        "restarts": status.get("restarts") or 0,
        "rows": sum(int(each.get("rows") or 0) for each in queries),
        "rows_per_second": round(sum(float(each.get("rows_per_second") or 0) for each in queries), 1),
        "lag": sum(_lag(each) for each in queries),
        "dead_letters": status.get("dead_letters") or 0,
        "problem": str(status.get("error") or ""),
    }


def _query(query: dict[str, Any]) -> dict[str, Any]:
    return {
        "query": str(query.get("query") or ""),
        "topics": sorted(_mapping(query.get("lag"))),
        "batch": query.get("batch"),
        "rows": query.get("rows") or 0,
        "rows_per_second": round(float(query.get("rows_per_second") or 0), 1),
        "batch_ms": query.get("batch_ms"),
        "lag": _lag(query),
        "state_rows": query.get("state_rows") or 0,
        "watermark": query.get("watermark"),
    }


def _lag(query: dict[str, Any]) -> int:
    return sum(
        int(number)
        for partitions in _mapping(query.get("lag")).values()
        for number in _mapping(partitions).values()
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
