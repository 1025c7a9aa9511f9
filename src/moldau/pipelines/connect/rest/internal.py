"""What only workers of the same group may ask of their leader; requests are signed with the session key."""

from __future__ import annotations

import re
from typing import Final

from moldau.http.asgi import Scope
from moldau.http.errors import ApiError
from moldau.pipelines.connect.rest.call import Call, Response, Route, raw_path
from moldau.pipelines.connect.worker.group.session_key import SessionKeys

_OK = Response(200, b"", None)
_INTERNAL: Final = {
    "POST": re.compile("/connectors/[^/]+/tasks/?"),
    "PUT": re.compile("/connectors/[^/]+/fence/?"),
}


def is_internal(scope: Scope) -> bool:
    """Return whether a request needs a signature, and therefore no credentials, as in Kafka Connect."""
    pattern = _INTERNAL.get(scope["method"])
    return pattern is not None and pattern.fullmatch(raw_path(scope)) is not None


class InternalRoutes:
    def __init__(self, keys: SessionKeys) -> None:
        self._keys = keys

    @property
    def routes(self) -> tuple[Route, ...]:
        return (
            Route("POST", "/connectors/{connector}/tasks", self.put_tasks),
            Route("PUT", "/connectors/{connector}/fence", self.fence),
        )

    async def put_tasks(self, call: Call) -> Response:
        await self._verify(call)
        configs = await call.json()
        if not isinstance(configs, list) or not all(isinstance(each, dict) for each in configs):
            raise ApiError(400, 400, "The body is not a list of configurations.")
        await call.herder.write_task_configs(call.connector, configs)
        return _OK

    async def fence(self, call: Call) -> Response:
        await self._verify(call)
        await call.herder.fence(call.connector)
        return _OK

    async def _verify(self, call: Call) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in call.scope["headers"]
        }
        self._keys.verify(await call.body(), headers)
