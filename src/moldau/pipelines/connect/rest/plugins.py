"""`/connector-plugins`: the plugins of this worker, their settings, and the validation of configurations."""

from __future__ import annotations

from typing import Any, Final

from moldau.http.errors import ApiError
from moldau.pipelines.connect.plugins import Plugin, PluginType
from moldau.pipelines.connect.rest.call import Call, Response, Route, answer
from moldau.pipelines.connect.worker.herder import bad_request, not_found

_SUFFIX: Final = "Connector"


async def list_plugins(call: Call) -> Response:
    only_connectors = call.flag("connectorsOnly", True)
    types = (PluginType.SINK, PluginType.SOURCE) if only_connectors else tuple(PluginType)
    return answer([_info(each) for each in call.herder.plugins.of(*types)])


def _info(plugin: Plugin) -> dict[str, Any]:
    return {"class": plugin.name, "type": plugin.type.value, "version": plugin.version}


async def definition(call: Call) -> Response:
    name = call.params["plugin"]
    found = call.herder.validation.definition(name)
    if found is None:
        raise not_found(f"Unknown plugin {name}.")
    return answer(found)


async def validate(call: Call) -> Response:
    name, config = call.params["plugin"], await call.properties()
    included = config.get("connector.class")
    if included is not None and not _normal(included).endswith(_normal(name)):
        raise bad_request(f"Included connector type {included} does not match request type {name}")
    try:
        return answer(await call.herder.validate(config))
    except ApiError as error:
        # Kafka Connect answers 500 here, 400 to the same mistake in a new connector.
        prefix = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
        raise ApiError(500, 500, prefix + error.message) from None


def _normal(name: str) -> str:
    return name.removesuffix(_SUFFIX) if name != _SUFFIX else name


ROUTES: Final = (
    Route("GET", "/connector-plugins", list_plugins),
    Route("GET", "/connector-plugins/{plugin}/config", definition),
    Route("PUT", "/connector-plugins/{plugin}/config/validate", validate),
)
