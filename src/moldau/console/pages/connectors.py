"""Connectors of Connect workers: list, status, create from a plug-in's definition, control, delete."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, JSONResponse, Response

from moldau.console.records.masking import MASK
from moldau.console.services import ConnectClient, ConnectError
from moldau.console.web.call import Call, CopyAs, Done, Page, Refused
from moldau.console.web.commands import curl, json_script, start_command
from moldau.console.web.forms import Form, InvalidField, confirm_name, parse_settings
from moldau.console.web.rendering import fragment

#: Where a worker's REST API usually is, for a console without one.
_USUAL_URL: Final = "http://localhost:8083"
_ACTIONS: Final = {"pause": "paused", "resume": "resumed", "stop": "stopped", "restart": "restarted"}
_FIELD: Final = "config."
#: Names and values of a configuration that may contain secrets.
_SECRET: Final = re.compile(
    r"password|passphrase|secret|token|credential|jaas|user\.info|(private|access|api|service)\.?_?key|auth",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(r"password\s*=|://[^/@\s]*:[^/@\s]*@", re.IGNORECASE)
_ATTEMPTS: Final = 40
_PAUSE_S: Final = 0.25


async def connectors(call: Call) -> Page:
    await call.snapshot()
    connect = call.services.connect
    if connect is None:
        start = start_command(call, "--connect", _USUAL_URL, "connect.url")
        data: dict[str, Any] = {"configured": False, "connectors": []}
        extra = {"plugins": [], "start": start}
        return Page("connectors", "Connectors", data, extra, _copy(call, _USUAL_URL, "/connectors"))
    found, plugins = await asyncio.gather(
        connect("GET", "/connectors", expand="status"), connect("GET", "/connector-plugins")
    )
    rows = [_row(name, each.get("status") or {}) for name, each in sorted((found or {}).items())]
    data = {"configured": True, "connectors": rows}
    extra = {"plugins": sorted(plugins or [], key=lambda each: str(each.get("class")))}
    return Page("connectors", "Connectors", data, extra, _copy(call, connect.url, "/connectors"))


async def connector(call: Call) -> Page:
    await call.snapshot()
    connect, name = _connect(call), call.path("connector")
    path = _path(name)
    found, status = await asyncio.gather(connect("GET", path), _status(connect, path))
    topics = await _topics(connect, path)
    data = {
        **_row(name, status),
        "tasks": [
            {
                "id": each.get("id"),
                "state": each.get("state"),
                "worker": each.get("worker_id"),
                "trace": each.get("trace") or "",
            }
            for each in status.get("tasks") or ()
        ],
        "trace": (status.get("connector") or {}).get("trace") or "",
        "config": _shown_config(found.get("config") or {}),
        "topics": topics,
    }
    return Page("connector", name, data, {}, _copy(call, connect.url, path))


async def plugin_form(call: Call) -> Response:
    """Return the fields that a plug-in defines."""
    connect, kind = _connect(call), call.query("class")
    if not kind:
        raise InvalidField("Choose a plug-in.")
    try:
        found = await connect("GET", f"/connector-plugins/{quote(kind, safe='')}/config")
    except ConnectError as error:
        if error.status != 404:
            raise
        # Without this endpoint the definition is part of every validation.
        result = await _validate(connect, kind, {"connector.class": kind})
        found = [each.get("definition") or {} for each in result.get("configs") or ()]
    fields = [
        each
        for each in found or ()
        if each.get("name") not in ("name", "connector.class") and each.get("importance") != "LOW"
    ]
    if call.wants_json:
        return JSONResponse({"fields": fields})
    return HTMLResponse(fragment("parts/connector_fields.html", fields=fields))


async def validate(call: Call) -> Done:
    connect, config = _connect(call), _config(await call.form())
    result = await _validate(connect, config["connector.class"], config)
    _refuse_errors(result)
    return Done("The configuration is valid.")


async def create(call: Call) -> Done:
    connect, config = _connect(call), _config(await call.form())
    _refuse_errors(await _validate(connect, config["connector.class"], config))
    name = config["name"]
    await connect("POST", "/connectors", {"name": name, "config": config})
    await _wait_for_status(connect, _path(name))
    return Done(f"Connector {name} is created.", call.url("connectors", name), status=201)


async def configure(call: Call) -> Done:
    """Replace the configuration of a connector; a masked value stays as it is."""
    connect, name = _connect(call), call.path("connector")
    form = await call.form()
    try:
        config = json.loads(form.get("config", ""))
    except ValueError:
        raise InvalidField("The configuration is not JSON.") from None
    if not isinstance(config, dict):
        raise InvalidField("The configuration must be a JSON object.")
    texts = {str(key): str(value) for key, value in config.items()}
    if MASK in texts.values():
        known = (await connect("GET", _path(name))).get("config") or {}
        shown = _shown_config(known)
        for each, value in texts.items():
            if value == MASK:
                if shown.get(each) != MASK:
                    raise InvalidField(f"{each} has no value that is masked; write the value.")
                texts[each] = known[each]
    await connect("PUT", f"{_path(name)}/config", texts)
    return Done(f"Connector {name} is saved.", call.url("connectors", name))


async def control(call: Call) -> Done:
    connect, name = _connect(call), call.path("connector")
    action = call.path("action")
    if action not in _ACTIONS:
        raise Refused(404, "This action does not exist.")
    if action == "restart":
        await connect("POST", f"{_path(name)}/restart", includeTasks="true")
    else:
        await connect("PUT", f"{_path(name)}/{action}")
    return Done(f"Connector {name} is {_ACTIONS[action]}.", call.url("connectors", name))


async def delete(call: Call) -> Done:
    connect, name = _connect(call), call.path("connector")
    confirm_name(await call.form(), "connector", name)
    await connect("DELETE", _path(name))
    return Done(f"Connector {name} is deleted.", call.url("connectors"))


def _shown_config(config: dict[str, str]) -> dict[str, str]:
    """Return a configuration without its secrets."""
    return {
        name: MASK if _SECRET.search(name) or _SECRET_VALUE.search(str(value)) else value
        for name, value in config.items()
    }


def _connect(call: Call) -> ConnectClient:
    if call.services.connect is None:
        raise Refused(404, "Connect is not configured: --connect URL.")
    return call.services.connect


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _row(name: str, status: dict[str, Any]) -> dict[str, Any]:
    tasks = status.get("tasks") or ()
    return {
        "name": name,
        "type": status.get("type") or "",
        "state": (status.get("connector") or {}).get("state") or "",
        "worker": (status.get("connector") or {}).get("worker_id") or "",
        "task_count": len(tasks),
        "failed": sum(each.get("state") == "FAILED" for each in tasks),
    }


async def _status(connect: ConnectClient, path: str) -> dict[str, Any]:
    """Return the status of a connector; empty while it is not assigned to a worker."""
    try:
        found = await connect("GET", f"{path}/status")
    except ConnectError as error:
        if error.status != 404:
            raise
        return {}
    return found if isinstance(found, dict) else {}


async def _wait_for_status(connect: ConnectClient, path: str) -> None:
    """Wait some seconds for the workers to start a new connector, so that its page can show it."""
    for _ in range(_ATTEMPTS):
        if await _status(connect, path):
            return
        await asyncio.sleep(_PAUSE_S)


async def _topics(connect: ConnectClient, path: str) -> list[str]:
    try:
        found = await connect("GET", f"{path}/topics")
    except ConnectError:
        return []
    return sorted(topic for each in (found or {}).values() for topic in each.get("topics") or ())


async def _validate(connect: ConnectClient, kind: str, config: dict[str, str]) -> dict[str, Any]:
    found = await connect("PUT", f"/connector-plugins/{quote(kind, safe='')}/config/validate", config)
    return found if isinstance(found, dict) else {}


def _refuse_errors(result: dict[str, Any]) -> None:
    errors = [
        f"{value.get('name')}: {message}"
        for each in result.get("configs") or ()
        if (value := each.get("value") or {})
        for message in value.get("errors") or ()
    ]
    if errors:
        raise InvalidField(" ".join(errors[:10]))


def _config(form: Form) -> dict[str, str]:
    config = {"name": form.text("name", "Name"), "connector.class": form.text("class", "Plug-in")}
    for name, value in form.items():
        if name.startswith(_FIELD) and value.strip():
            config[name.removeprefix(_FIELD)] = value.strip()
    return config | parse_settings(form.get("settings", ""))


def _copy(call: Call, base: str, path: str) -> CopyAs:
    url = base + path
    return CopyAs(shlex.join(["curl", url]), curl(call), json_script(url))
