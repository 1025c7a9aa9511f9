"""`/`, `/health`, `/metrics` and `/admin/loggers`: the worker itself."""

from __future__ import annotations

from typing import Final

import moldau
from moldau.metrics.exposition import OPEN_METRICS, TEXT, wants_open_metrics
from moldau.pipelines.connect.rest.call import NO_CONTENT, Call, Response, Route, answer
from moldau.pipelines.connect.storage import config_records as records
from moldau.pipelines.connect.worker.herder import bad_request, not_found

_HEALTHY: Final = {
    "status": "healthy",
    "message": "Worker has completed startup and is ready to handle requests.",
}


async def root(call: Call) -> Response:
    return answer({"version": moldau.__version__, "commit": "unknown", "kafka_cluster_id": call.cluster_id})


async def health(call: Call) -> Response:
    """Answer once the worker knows the group; a worker that cannot join is starting."""
    if call.herder.group.has_joined:
        return answer(_HEALTHY)
    return answer({"status": "starting", "message": "Worker is still starting up."}, 503)


async def metrics(call: Call) -> Response:
    """Answer with the worker's metrics for Prometheus; Kafka Connect has no such path."""
    accept = next((value for name, value in call.scope["headers"] if name == b"accept"), b"")
    is_open = wants_open_metrics(accept.decode("latin-1"))
    text = "".join((await call.herder.metrics.scrape()).rendered(open_metrics=is_open))
    return Response(200, text.encode(), (OPEN_METRICS if is_open else TEXT).encode())


async def list_loggers(call: Call) -> Response:
    return answer(call.herder.loggers.all_levels())


async def get_logger(call: Call) -> Response:
    name = call.params["logger"]
    level = call.herder.loggers.level(name)
    if level is None:
        raise not_found(f"Logger {name} not found.")
    return answer(level)


async def set_level(call: Call) -> Response:
    name = call.params["logger"]
    level = (await call.json_object()).get("level")
    if level is None:
        raise bad_request("Desired 'level' parameter was not specified in request.")
    if not isinstance(level, str) or not call.herder.loggers.is_level(level):
        raise not_found(f"invalid log level '{level}'.")
    if (call.queries("scope") or ["worker"])[0].lower() != "cluster":
        return answer(call.herder.loggers.set_level(name, level))
    if call.herder.settings.group is None:
        call.herder.loggers.set_level(name, level)
    else:
        await call.herder.store.config_log.append([records.logger_level(name, level)])
    return NO_CONTENT


ROUTES: Final = (
    Route("GET", "/", root),
    Route("GET", "/health", health),
    Route("GET", "/metrics", metrics),
    Route("GET", "/admin/loggers", list_loggers),
    Route("GET", "/admin/loggers/{logger}", get_logger),
    Route("PUT", "/admin/loggers/{logger}", set_level),
)
