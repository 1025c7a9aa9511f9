"""`/connectors`: create, read, change, restart, pause, stop and delete connectors."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from moldau.http.errors import ApiError
from moldau.pipelines.connect.rest.call import (
    ACCEPTED,
    NO_CONTENT,
    Call,
    Response,
    Route,
    answer,
    texts,
)
from moldau.pipelines.connect.storage.config_state import RestartRequest
from moldau.pipelines.connect.storage.types import TargetState, TaskId
from moldau.pipelines.connect.worker.herder import bad_request

_INITIAL: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
_EXPANSIONS: Final = ("status", "info")


async def list_connectors(call: Call) -> Response:
    names = list(call.herder.store.configs.connectors)
    expansions = call.queries("expand")
    if not expansions:
        return answer(names)
    await call.herder.store.refresh_statuses()
    result = {}
    for name in names:
        try:
            result[name] = {each: _expanded(call, name, each) for each in expansions if each in _EXPANSIONS}
        except ApiError:
            # It was deleted meanwhile, or has no status yet.
            continue
    return answer(result)


def _expanded(call: Call, name: str, expansion: str) -> dict[str, Any]:
    return call.herder.status(name) if expansion == "status" else call.herder.info(name)


async def create(call: Call) -> Response:
    body = await call.json_object()
    unknown = sorted(set(body) - {"name", "config", "initial_state"})
    if unknown:
        raise bad_request(
            f'Unrecognized field "{unknown[0]}": a connector has name, config and initial_state.'
        )
    name = str(body.get("name") or "").strip()
    config = body.get("config")
    if not isinstance(config, dict):
        raise bad_request("The field config is not an object of settings.")
    target = _initial_state(body.get("initial_state"))
    properties = _named(name, texts(config))
    created = await call.herder.put_config(name, properties, may_replace=False, target=target)
    return answer(created.info, 201, (_location(name),))


def _initial_state(value: Any) -> TargetState | None:
    if value is None:
        return None
    found = _INITIAL.get(str(value).upper())
    if found is None:
        raise bad_request(f"The initial state {value} is none of running, paused and stopped.")
    return found


def _named(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the connector's name, which must not contradict the URL."""
    included = config.get("name")
    if included is not None and included != name:
        raise bad_request(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return {**config, "name": name}


def _location(name: str) -> tuple[bytes, bytes]:
    return b"location", f"/connectors/{quote(name, safe='')}".encode()


async def get(call: Call) -> Response:
    return answer(call.herder.info(call.connector))


async def get_config(call: Call) -> Response:
    return answer(call.herder.info(call.connector)["config"])


async def put_config(call: Call) -> Response:
    config = _named(call.connector, await call.properties())
    created = await call.herder.put_config(call.connector, config, may_replace=True)
    if created.created:
        return answer(created.info, 201, (_location(call.connector),))
    return answer(created.info)


async def patch_config(call: Call) -> Response:
    patched = await call.herder.patch_config(call.connector, await call.properties())
    return answer(patched.info)


async def delete(call: Call) -> Response:
    await call.herder.delete(call.connector)
    return NO_CONTENT


async def status(call: Call) -> Response:
    await call.herder.store.refresh_statuses()
    return answer(call.herder.status(call.connector))


async def topics(call: Call) -> Response:
    _require_tracking(call)
    await call.herder.store.refresh_statuses()
    return answer({call.connector: {"topics": call.herder.topics(call.connector)}})


async def reset_topics(call: Call) -> Response:
    _require_tracking(call)
    if not call.herder.settings.topic_tracking_reset:
        raise ApiError(403, 403, "Topic tracking reset is disabled.")
    await call.herder.store.refresh_statuses()
    call.herder.reset_topics(call.connector)
    return ACCEPTED


def _require_tracking(call: Call) -> None:
    if not call.herder.settings.topic_tracking:
        raise ApiError(403, 403, "Topic tracking is disabled.")


async def restart(call: Call) -> Response:
    request = RestartRequest(call.connector, call.flag("includeTasks"), call.flag("onlyFailed"))
    if not request.include_tasks and not request.only_failed:
        await call.herder.restart_connector(call.connector)
        return NO_CONTENT
    await call.herder.store.refresh_statuses()
    return answer(await call.herder.restart(request), 202)


async def pause(call: Call) -> Response:
    await call.herder.set_target(call.connector, TargetState.PAUSED)
    return ACCEPTED


async def resume(call: Call) -> Response:
    await call.herder.set_target(call.connector, TargetState.STARTED)
    return ACCEPTED


async def stop(call: Call) -> Response:
    await call.herder.stop(call.connector)
    return NO_CONTENT


async def tasks(call: Call) -> Response:
    return answer(call.herder.tasks(call.connector))


async def task_status(call: Call) -> Response:
    await call.herder.store.refresh_statuses()
    return answer(call.herder.task_status(_task(call)))


async def restart_task(call: Call) -> Response:
    await call.herder.restart_task(_task(call))
    return NO_CONTENT


def _task(call: Call) -> TaskId:
    text = call.params["task"]
    if not (text.isascii() and text.isdigit()):
        raise ApiError(404, 404, "HTTP 404 Not Found")
    return TaskId(call.connector, int(text))


ROUTES: Final = (
    Route("GET", "/connectors", list_connectors),
    Route("POST", "/connectors", create),
    Route("GET", "/connectors/{connector}", get),
    Route("DELETE", "/connectors/{connector}", delete),
    Route("GET", "/connectors/{connector}/config", get_config),
    Route("PUT", "/connectors/{connector}/config", put_config),
    Route("PATCH", "/connectors/{connector}/config", patch_config),
    Route("GET", "/connectors/{connector}/status", status),
    Route("GET", "/connectors/{connector}/topics", topics),
    Route("PUT", "/connectors/{connector}/topics/reset", reset_topics),
    Route("POST", "/connectors/{connector}/restart", restart),
    Route("PUT", "/connectors/{connector}/pause", pause),
    Route("PUT", "/connectors/{connector}/resume", resume),
    Route("PUT", "/connectors/{connector}/stop", stop),
    Route("GET", "/connectors/{connector}/tasks", tasks),
    Route("GET", "/connectors/{connector}/tasks/{task}/status", task_status),
    Route("POST", "/connectors/{connector}/tasks/{task}/restart", restart_task),
)
